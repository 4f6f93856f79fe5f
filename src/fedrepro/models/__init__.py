"""Architectures, one a file. To add one: write the file, add a line here, and a test.

A model is a module made as `Model(inputs, outputs, **hyper)` for samples of shape `inputs` and `outputs` classes or
targets, with an `objective` (see `fedrepro.core.task`).
"""

from torch import nn

from fedrepro.models.char_lstm import CharLSTM
from fedrepro.models.cnn import CNN
from fedrepro.models.lenet5 import LeNet5
from fedrepro.models.linear import LinearRegression
from fedrepro.models.mlp import MLP
from fedrepro.models.resnet9 import ResNet9
from fedrepro.models.softmax import SoftmaxRegression
from fedrepro.studies.fedlin.models.linear_outputs import LinearOutputs
from fedrepro.studies.fgpr.models.gaussian_process import GaussianProcess
from fedrepro.studies.fgpr.models.network import Network
from fedrepro.studies.fgpr.models.polynomial import Polynomial
from fedrepro.studies.omni.models.omni_cnn import OmniCNN

MODELS: dict[str, type[nn.Module]] = {
    "char_lstm": CharLSTM,
    "cnn": CNN,
    "gaussian_process": GaussianProcess,
    "lenet5": LeNet5,
    "linear": LinearRegression,
    "linear_outputs": LinearOutputs,
    "mlp": MLP,
    "network": Network,
    "omni_cnn": OmniCNN,
    "polynomial": Polynomial,
    "resnet9": ResNet9,
    "softmax": SoftmaxRegression,
}
