"""Architectures that stand for themselves or serve several studies, one per file."""
