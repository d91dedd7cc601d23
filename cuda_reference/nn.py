"""tritonkernels.nn, computed by the CUDA designs: classes, arguments and `replace` are documented there."""

from tritonkernels.nn import modules
from tritonkernels.nn.swap import swap

from .conv2d import conv2d
from .launch import LIBRARY
from .matmul import matmul


class Linear(modules.Linear):
    """tritonkernels.nn.Linear, computed by the CUDA designs."""

    function = staticmethod(matmul)


class Conv2d(modules.Conv2d):
    """tritonkernels.nn.Conv2d, computed by the CUDA designs."""

    function = staticmethod(conv2d)


def replace(model, precision=None, only_where_faster=True, inputs=None, target=None):
    """tritonkernels.nn.replace, with the classes and the predicted times of this package."""
    return swap(model, (Linear, Conv2d), LIBRARY, precision, only_where_faster, inputs, target)
