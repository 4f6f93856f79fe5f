"""fedrepro: five federated-learning papers, reproduced with one command."""

__version__ = "0.2.0"
