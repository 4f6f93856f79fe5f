"""Splitting schemes, one per file: the function of the file's name deals a data set out to clients.

A scheme is a pure function of a data set and a random stream and returns, for each split, the rows of every client.
`fedrepro.data.inside` then cuts each client's own samples where an experiment asks for it.
"""
