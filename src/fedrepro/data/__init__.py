"""Data: the catalogue of real files, fetching and verifying them, data sets and federations as files."""
