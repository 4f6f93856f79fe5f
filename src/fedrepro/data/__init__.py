"""Data: the catalogue of real files, fetching and verifying them, and data sets and federations as files."""
