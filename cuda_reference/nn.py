"""tritonkernels.nn, computed by the CUDA designs: classes, arguments, `replace` and `restore` are documented there."""

from tritonkernels.nn import modules, swap

from .conv2d import conv2d
from .matmul import matmul


class Linear(modules.Linear):
    """tritonkernels.nn.Linear, computed by the CUDA designs."""

    function = staticmethod(matmul)


class Conv2d(modules.Conv2d):
    """tritonkernels.nn.Conv2d, computed by the CUDA designs."""

    function = staticmethod(conv2d)


def replace(model, precision=None, only_where_faster=True, inputs=None, *, budget=60.0):
    """tritonkernels.nn.replace, with the classes of this package."""
    return swap.swap(model, (Linear, Conv2d), precision, only_where_faster, inputs, budget)


def restore(model):
    """tritonkernels.nn.restore, for the classes of this package."""
    return swap.restore(model, (Linear, Conv2d))
