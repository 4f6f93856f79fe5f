"""Federated Gaussian process regression (thesis, ch. 4)."""
