"""Generators of the stand-ins: twins of real data sets, of the same shapes and the same kind of heterogeneity, drawn
from a seed in seconds. What is made from them is labelled `standin` and never counts as real."""
