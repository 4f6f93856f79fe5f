"""Federated methods, one a file. To add one: write the file, add a line here, and a test."""

from fedrepro.algorithms.dfl import DFL
from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.algorithms.fedsgd_authors import FedSGDAuthors
from fedrepro.algorithms.fedsgd_scaled import FedSGDScaled
from fedrepro.algorithms.local import Local
from fedrepro.algorithms.omni_fedge import OmniFedge
from fedrepro.algorithms.omni_fedge_authors import OmniFedgeAuthors
from fedrepro.core.algorithm import Algorithm

ALGORITHMS: dict[str, type[Algorithm]] = {
    "dfl": DFL,
    "fedavg": FedAvg,
    "fedprox": FedProx,
    "fedsgd": FedSGD,
    "fedsgd_authors": FedSGDAuthors,
    "fedsgd_scaled": FedSGDScaled,
    "local": Local,
    "omni_fedge": OmniFedge,
    "omni_fedge_authors": OmniFedgeAuthors,
}
