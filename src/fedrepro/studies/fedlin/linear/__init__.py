"""Mathematics that only the study of federated linear models needs."""
