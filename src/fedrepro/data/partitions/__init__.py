"""Splitting schemes, one a file: who holds what. To add one: write the file, add a line here, and a test.

A scheme is a pure function of a data set and a random stream and returns, for each split, the rows of every
client. `inside` then cuts each client's own samples where an experiment asks for it.
"""

from collections.abc import Callable

from fedrepro.data.federation_files import Assignment
from fedrepro.data.inside import INSIDE
from fedrepro.data.partitions.by_client import by_client
from fedrepro.data.partitions.dirichlet import dirichlet
from fedrepro.data.partitions.iid import iid
from fedrepro.data.partitions.k_classes import k_classes
from fedrepro.studies.fgpr.partitions.equal_devices import equal_devices
from fedrepro.studies.fgpr.partitions.newcomers import newcomers
from fedrepro.studies.gifair.partitions.three_groups import three_groups
from fedrepro.studies.omni.partitions.omni_fedge import omni_skewed, omni_stratified
from fedrepro.studies.sa.partitions.super_cluster_dirichlet import super_cluster_dirichlet

PARTITIONS: dict[str, Callable[..., Assignment]] = {
    "by_client": by_client,
    "dirichlet": dirichlet,
    "equal_devices": equal_devices,
    "iid": iid,
    "k_classes": k_classes,
    "newcomers": newcomers,
    "omni_skewed": omni_skewed,
    "omni_stratified": omni_stratified,
    "super_cluster_dirichlet": super_cluster_dirichlet,
    "three_groups": three_groups,
}

__all__ = ["INSIDE", "PARTITIONS", "Assignment"]
