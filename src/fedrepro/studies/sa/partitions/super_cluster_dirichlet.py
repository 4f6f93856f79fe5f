"""SC-DIR: every client draws on one cluster of related classes, by a Dirichlet law inside it (arXiv 2402.12945, §V).

The paper gives neither clusters nor numbers; both are those of the code of the work that it cites (FL-SC-NIID).
Clients are shared among the clusters in proportion to 1 + |cluster| / #classes: ceilings, then one is taken from a
random cluster until they sum to L. Inside a cluster the recipe is that of `dirichlet`.

Deviation: that code has no Fashion-MNIST branch; its clients are shared in proportion to |cluster|, 3/4/3 of 10.
"""

import numpy as np

from fedrepro.data import assignment
from fedrepro.data.dataset import Dataset
from fedrepro.data.partitions.dirichlet import deal
from fedrepro.errors import UserError, nearest

_CIFAR100 = ({0, 53, 82, 83}, {1, 43, 51, 54, 62, 70, 92}, {23, 30, 67, 69, 73, 95}, {47, 52, 59, 96})
CLUSTERS: dict[str, tuple[tuple[int, ...], ...]] = {
    "cifar10": ((0, 1, 8, 9), (2, 3, 4, 5, 6, 7)),
    "stl10": ((2, 8, 9), (0, 1, 3, 4, 5, 6, 7)),
    "fashion_mnist": ((0, 1, 3), (2, 4, 6, 8), (5, 7, 9)),
    "cifar100": tuple(
        tuple(sorted(cluster)) for cluster in (*_CIFAR100[:2], set(range(100)).difference(*_CIFAR100), *_CIFAR100[2:])
    ),
}
EXAMPLES = {name: {"clients": 6, "clusters": name, "minimum": 2} for name in CLUSTERS}


def super_cluster_dirichlet(
    dataset: Dataset, rng: np.random.Generator, *, clients: int, clusters: str, alpha: float = 0.5, minimum: int = 15
) -> assignment.Assignment:
    """clusters: the name of a table of CLUSTERS. Groups are the clusters; the data set's own test set is global."""
    scheme = "super_cluster_dirichlet"
    labels = assignment.class_labels(dataset, scheme)
    if clusters not in CLUSTERS:
        raise UserError(f"{scheme}: clusters = '{clusters}' is unknown{nearest(clusters, CLUSTERS)}")
    table = CLUSTERS[clusters]
    known = sum(map(len, table))
    if known != dataset.outputs:
        raise UserError(f"{scheme}: clusters = '{clusters}' are of {known} classes, the data set has {dataset.outputs}")
    classes = assignment.rows_by_class(labels, known, rng)
    assignment.require_all_classes(np.array([len(rows) for rows in classes]), scheme)
    assignment.check_clients(clients, len(labels), scheme)
    if clients < len(table):
        raise UserError(f"{scheme}: clients = {clients}: there are {len(table)} clusters, each needs one")
    held, groups = [], []
    for number, mine in enumerate(clients_by_cluster(clusters, clients, rng)):
        rows = [classes[c] for c in table[number]]
        held += deal(rows, rng, int(mine), alpha, minimum, f"{scheme}, cluster {number + 1}")
        groups += [f"cluster {number + 1}"] * int(mine)
    return assignment.Assignment({"train": held, **assignment.others(dataset)}, groups)


def clients_by_cluster(clusters: str, clients: int, rng: np.random.Generator) -> np.ndarray:
    """Number of clients that draw on each cluster [clusters]; at least one each."""
    sizes = np.array([len(cluster) for cluster in CLUSTERS[clusters]])
    if clusters == "fashion_mnist":
        return np.ones(len(sizes), dtype=int) + assignment.apportion(clients - len(sizes), sizes.tolist())
    weights = 1 + sizes / sizes.sum()
    counts: np.ndarray = np.ceil(clients * weights / weights.sum() - 1e-9).astype(int)
    while counts.sum() > clients:
        counts[rng.choice(np.flatnonzero(counts > 1))] -= 1
    return counts
