"""Data sets, one per file: a function of a `Source` and its own parameters, declared as `DATASET`.

No module here imports torch. One that has real files has an entry in config/datasets.yaml, too.
"""
