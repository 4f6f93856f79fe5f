"""Linear models: closed forms, posteriors, samplers and expectation propagation."""
