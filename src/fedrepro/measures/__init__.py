"""Per-run quantities derived from the logged metrics, one file a study.

`measure(table)` of a study's module takes an experiment's tidy table and returns further rows of the same columns,
with split `derived`; figures, tables and claims all read them.
"""
