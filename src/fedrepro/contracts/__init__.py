"""What every method, model, data set and partition must fulfil: run by the tests and by `fedrepro check`."""
