"""Hierarchical linear models, HM1 and HM2 (thesis, ch. 3)."""
