"""The simulator: experiments as data, clients, rounds, parameters, random streams, checkpoints."""
