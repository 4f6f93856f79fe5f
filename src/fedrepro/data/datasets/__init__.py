"""Data sets, one per file: a function of a `Source` and its own parameters, declared as `DATASET`, without torch."""
