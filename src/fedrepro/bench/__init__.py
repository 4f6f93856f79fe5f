"""`make bench`: what is measured, each part a command of its own; nothing of the studies depends on it."""
