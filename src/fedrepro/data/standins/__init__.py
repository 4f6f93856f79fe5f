"""Stand-ins for real data, made where the files are not there; labelled wherever they are seen."""
