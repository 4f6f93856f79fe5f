"""The engine: the only communication-round loop, client execution, parameters, streams, checkpoints."""
