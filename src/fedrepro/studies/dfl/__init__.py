"""Distributed federated learning by alternating periods of training."""
