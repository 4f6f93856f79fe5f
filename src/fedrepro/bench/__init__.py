"""`make bench`: each part is a command of its own. No study's results depend on it."""
