"""Stochastic approximation approach to federated machine learning."""
