"""Omni-Fedge: federated algorithm with Bayesian approach."""
