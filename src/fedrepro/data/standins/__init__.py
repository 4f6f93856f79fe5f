"""Stand-ins for real data whose files are missing; labelled wherever they are shown."""
