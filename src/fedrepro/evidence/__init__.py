"""Tidy tables, intervals, claims and their verdicts. Nothing here imports the simulator."""
