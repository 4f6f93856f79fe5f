"""Data sets, one a file. To add one: write the file, add a line here, and one to config/datasets.yaml if it is
not synthetic by definition.

A data set is a function of a `Source` (where real files are, and a random stream) and its own parameters, and
returns a `Dataset`. No module here imports torch when it is imported.
"""

from fedrepro.data.dataset import Dataset, Entry, Source, Split
from fedrepro.data.datasets.cifar10 import cifar10
from fedrepro.data.datasets.cifar100 import cifar100
from fedrepro.data.datasets.cmapss import cmapss, cmapss_size
from fedrepro.data.datasets.dfl_line import dfl_line, dfl_line_size
from fedrepro.data.datasets.emnist import emnist
from fedrepro.data.datasets.fashion_mnist import fashion_mnist
from fedrepro.data.datasets.fedprox_synthetic import fedprox_synthetic, fedprox_synthetic_size
from fedrepro.data.datasets.femnist import femnist, femnist_size
from fedrepro.data.datasets.mnist import mnist
from fedrepro.data.datasets.mnist5k import mnist5k
from fedrepro.data.datasets.stl10 import stl10
from fedrepro.data.images import image_size
from fedrepro.studies.fedlin.datasets.cmapss_polynomial import cmapss_polynomial, cmapss_polynomial_size
from fedrepro.studies.fedlin.datasets.hm1 import hm1, hm1_size
from fedrepro.studies.fedlin.datasets.hm1_outputs import hm1_outputs, hm1_outputs_size
from fedrepro.studies.fedlin.datasets.hm2 import hm2, hm2_size
from fedrepro.studies.fedlin.datasets.student import student, student_size
from fedrepro.studies.fgpr.datasets.cmapss_engines import cmapss_engines, cmapss_engines_size
from fedrepro.studies.fgpr.datasets.gp_draws import gp_draws, gp_draws_size
from fedrepro.studies.fgpr.datasets.multi_fidelity import multi_fidelity, multi_fidelity_size
from fedrepro.studies.fgpr.datasets.sarcos import sarcos, sarcos_size
from fedrepro.studies.gifair.datasets.shakespeare import shakespeare, shakespeare_size

DATASETS: dict[str, Entry] = {
    "dfl_line": Entry(dfl_line, seeded=True, size=dfl_line_size),
    "fedprox_synthetic": Entry(fedprox_synthetic, seeded=True, size=fedprox_synthetic_size),
    "gp_draws": Entry(gp_draws, seeded=True, size=gp_draws_size),
    "hm1": Entry(hm1, seeded=True, size=hm1_size),
    "hm1_outputs": Entry(hm1_outputs, seeded=True, size=hm1_outputs_size),
    "hm2": Entry(hm2, seeded=True, size=hm2_size),
    "multi_fidelity": Entry(multi_fidelity, seeded=True, size=multi_fidelity_size),
    "cifar10": Entry(cifar10, seeded=False, size=image_size(cifar10), files="cifar10"),
    "cifar100": Entry(cifar100, seeded=False, size=image_size(cifar100), files="cifar100"),
    "emnist": Entry(emnist, seeded=False, size=image_size(emnist), files="emnist"),
    "fashion_mnist": Entry(fashion_mnist, seeded=False, size=image_size(fashion_mnist), files="fashion_mnist"),
    "femnist": Entry(femnist, seeded=False, size=femnist_size, files="femnist"),
    "mnist": Entry(mnist, seeded=False, size=image_size(mnist), files="mnist"),
    "mnist5k": Entry(mnist5k, seeded=False, size=image_size(mnist5k)),
    "shakespeare": Entry(
        shakespeare,
        seeded=False,
        size=shakespeare_size,
        files="shakespeare",
        reads=("config/shakespeare_roles.csv",),
    ),
    "stl10": Entry(stl10, seeded=False, size=image_size(stl10), files="stl10"),
    "cmapss": Entry(cmapss, seeded=False, size=cmapss_size, files="cmapss"),
    "cmapss_engines": Entry(cmapss_engines, seeded=False, size=cmapss_engines_size, files="cmapss"),
    "cmapss_polynomial": Entry(cmapss_polynomial, seeded=False, size=cmapss_polynomial_size, files="cmapss"),
    "sarcos": Entry(sarcos, seeded=False, size=sarcos_size, files="sarcos"),
    "student": Entry(student, seeded=False, size=student_size, files="student"),
}

__all__ = ["DATASETS", "Dataset", "Entry", "Source", "Split"]
