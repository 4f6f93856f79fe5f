"""Gaussian processes: kernels, exact and variational inference, and the baselines of the thesis."""
