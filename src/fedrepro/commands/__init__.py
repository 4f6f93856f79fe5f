"""The `fedrepro` command, and the commands behind make."""
