"""MNIST (LeCun, Bottou, Bengio, Haffner 1998, Gradient-based learning applied to document recognition): digits.

Shapes: train x [60000, 1, 28, 28] bytes, y [60000] = the digit; test 10,000. A model gets pixels/255, as in Omni-Fedge.
Without its files, `data: auto` takes up to 5,000 samples from the real digits of `mnist5k`. Stand-in: rendered
handwriting of 500 writers, about as many as wrote MNIST.
"""

from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.data.datasets.mnist5k import PACKAGED, STANDIN, mnist5k
from fedrepro.data.images import ImageSet, read_mnist


def mnist(source: Source, *, train: int = 60_000, test: int = 10_000, pooled: bool = False) -> Dataset:
    few = source.mode == "auto" and train + test <= PACKAGED and source.find("mnist") is None
    return (mnist5k if few else _SET.load)(source, train=train, test=test, pooled=pooled)


_SET = ImageSet("mnist", 10, (1, 28, 28), 60_000, 10_000, read_mnist, STANDIN)
DATASET = _SET.entry(mnist, train=400, test=100, pooled=True)
