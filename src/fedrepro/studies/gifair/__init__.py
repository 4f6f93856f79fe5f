"""GIFAIR-FL: group and individual fairness (thesis, ch. 2)."""
