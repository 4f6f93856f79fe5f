"""Partitions, one per file: the function of the file's name, of a data set and a random stream, returns every client's
rows in each split. `EXAMPLES`: data set → settings with which the contract tests deal out its example."""
