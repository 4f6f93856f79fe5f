"""Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv 1708.07747): articles of clothing, 10 classes.

Shapes: train x [60000, 1, 28, 28] bytes, y [60000], 6,000 per class; test 10,000, 1,000 per class. A model gets
pixels/255, as in Omni-Fedge. Stand-in: textured shapes.
"""

from fedrepro.data.images import ImageSet, read_mnist
from fedrepro.data.standins.textures import textured_shapes

_SET = ImageSet("fashion_mnist", 10, (1, 28, 28), 60_000, 10_000, read_mnist, textured_shapes)
DATASET = _SET.entry(train=400, test=50)
