"""Stochastic gradient Langevin dynamics for noise-intrinsic federated learning."""
