"""Gaussian process regression: what the study fgpr needs."""
