"""Data sets, one per file: a function of a `Source` and its own parameters, declared as `DATASET`.

No module here imports torch. A data set with real files also has an entry in config/datasets.yaml.
"""
