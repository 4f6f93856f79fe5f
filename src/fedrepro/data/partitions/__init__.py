"""Partitions, one per file: the function of the file's name deals a data set out to clients.

A pure function of a data set and a random stream returns, for each split, the rows of every client; `preparation` may
then cut each client's own samples. `EXAMPLES`: data set → settings with which the contract tests deal out its example.
"""
