"""The papers: what only one of them needs, one folder each. Studies do not import each other."""
