"""The bench of the study as a whole (`python -m fedrepro.bench`)."""

from fedrepro.bench.case import Case
from fedrepro.bench.runs import WholeStudy

#: most of the study's runs are softmax regressions; the others' model is larger
WHOLE_STUDY = WholeStudy("demo", Case("softmax", (60,), clients=10, steps=30))
