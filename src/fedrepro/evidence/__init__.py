"""Evidence: tidy tables, intervals, claims and their verdicts. It knows numbers, never a simulator."""
