"""Figures, tables, notebooks and the page."""
