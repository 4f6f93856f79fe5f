"""Figures and tables, one file a study, one function an artefact.

A function takes the tidy tables of the experiments that config/artefacts/<study>.yaml names, by name, and returns
(Figure, DataFrame with what is drawn) for a figure or a DataFrame for a table. It reads no files.
"""
