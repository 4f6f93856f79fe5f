"""Results as one folder for an archive: a Workflow Run RO-Crate, Croissant metadata of the data, Zenodo metadata."""
