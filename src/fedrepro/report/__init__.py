"""What a reader sees: figures, tables, notebooks and the page."""
