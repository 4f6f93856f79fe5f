"""Federated methods that stand for themselves or serve several studies, one per file."""
