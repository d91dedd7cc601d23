"""Launches of CUDA designs, and the Library of them: CUDA tensors on the GPU, CPU tensors in the emulation (simt/)."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from tritonkernels import validate
from tritonkernels.choice.model import reached_by
from tritonkernels.choice.work import KNOWN
from tritonkernels.errors import LaunchError
from tritonkernels.frozen import FrozenDict
from tritonkernels.library import Library
from tritonkernels.plans import FromAddress, Launched, stream_of
from tritonkernels.target import Target

from . import build, bulk, recipes, toolchain


@dataclass(frozen=True)
class Source:
    """A .cuh file and the kernel instantiations that bulk builds and the emulation build together: a design's config space."""

    header: str  # relative to this package
    expressions: tuple[str, ...]


@dataclass(frozen=True)
class CudaLaunch:
    """`expression<<<grid, block, shared_bytes>>>(*arguments)`: tensors become pointers, None null, tuples structs."""

    source: Source
    expression: str
    grid: tuple[int, ...]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    shared_bytes: int = 0
    part: tuple[str, ...] = ()  # of the source, what a call on a GPU builds: this kernel and its companions; () is all

    @property
    def name(self):
        """The kernel's short name: "align"."""
        return self.expression.partition("<")[0].rpartition("::")[2]

    def build(self, whole=False):
        """Build for the current GPU what run() will load there, or all of the source; the tensors may be on the meta device."""
        header, expressions = self.source.header, self.source.expressions
        build.build_part(header, expressions if whole else self.part or expressions, expressions, "cuda")

    def alone(self):
        return self  # whether kernels wait is what their header includes: recipes.overlaps

    def run(self):
        device = next(x.device for x in self.arguments if isinstance(x, torch.Tensor))
        stream = stream_of(device)
        before = (self.kernel(device), self.expression, (*self.grid, 1, 1)[:3], self.block, self.shared_bytes)
        _launch(*before, stream, *map(_wire, self.arguments))
        overlaps = device.type == "cuda" and recipes.overlaps(self.source.header)
        return Launched(_launch, before, (), tuple(map(_with_address, self.arguments)), overlaps=overlaps)

    def kernel(self, device):
        """The function that launches it on that device; built if need be."""
        header, whole = self.source.header, self.source.expressions
        if device.type == "cuda":  # nvcc takes seconds more for a config space than for a config, g++ does not
            return build.load_part(header, self.part or whole, whole, "cuda")[self.expression]
        return bulk.load(header, (self.expression,), whole, "simt")[self.expression]


def _launch(kernel, expression, grid, block, shared_bytes, stream, *arguments):
    try:
        kernel(grid, block, shared_bytes, stream, *arguments)
    except RuntimeError as error:
        raise LaunchError(f"{expression}, grid {grid}, block {block}: {error}\n{LaunchError.REMEDY}") from error


@dataclass(frozen=True)
class Kernel:
    """The template of a kernel, as "gemv::vectorized<{A}, {X}, {ROWS}>" of gemv/vectorized.cuh, and of its parameters those of
    which all values in `space` are built together; a call builds its own."""

    template: str
    space: Iterable[dict[str, Any]] = ({},)
    _known: dict = field(default_factory=dict, repr=False, compare=False)  # to spell 64 instances takes 200 us

    def launch(self, parameters, grid, threads, arguments, shared_bytes=0):
        """A launch of the instance with these parameters, in blocks of so many threads."""
        key = frozenset(parameters.items())
        if key not in self._known:
            self._known[key] = self._source(parameters), _instance(self.template, parameters)
        source, expression = self._known[key]
        return CudaLaunch(source, expression, grid, (threads, 1, 1), arguments, shared_bytes, (expression,))

    def _source(self, parameters):
        namespace, _, name = self.template.partition("<")[0].partition("::")
        together = dict.fromkeys(_instance(self.template, {**parameters, **varied}) for varied in self.space)
        return Source(f"{namespace}/{name}.cuh", tuple(together))


def _instance(template, parameters):
    spelt = {name: str(value).lower() if isinstance(value, bool) else value for name, value in parameters.items()}
    return template.format(**spelt)


@dataclass(frozen=True)
class TensorMap:
    """A kernel's CUtensorMap: a tensor (batch, rows, columns), contiguous along columns, copied in boxes of (rows, columns).
    `to_tf32`: fp32 elements are rounded to tf32 on their way to shared memory."""

    tensor: torch.Tensor
    box: tuple[int, int]
    to_tf32: bool = False

    def wire(self):
        """The members of common/tensor_map.cuh's TiledTensor."""
        (batches, rows, columns), (batch, row, _) = self.tensor.shape, self.tensor.stride()
        row = row if rows > 1 else ceil_div(columns, 16) * 16  # of a single row any legal stride will do
        batch = batch if batches > 1 else rows * row
        kind = self.tensor.element_size(), int(self.to_tf32)
        return self.tensor.data_ptr(), *kind, batches, rows, columns, batch, row, *self.box


@dataclass(frozen=True)
class PixelMap:
    """A kernel's CUtensorMap: images (N, C, H, W), contiguous along C, copied in boxes of (pixels, channels). Pixels go along
    H and W from `first` in `steps` to the last one moved by `last`, as common/tensor_map.cuh's PixelTensor says; `to_tf32` as
    of a TensorMap."""

    tensor: torch.Tensor
    box: tuple[int, int]
    first: tuple[int, int] = (0, 0)
    last: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (1, 1)
    to_tf32: bool = False

    def wire(self):
        """The members of the map, as numbers."""
        (n, c, h, w), (image, _, row, pixel) = self.tensor.shape, self.tensor.stride()
        pixel = pixel if w > 1 else ceil_div(c, 16) * 16  # of a single one any legal stride will do
        row = row if h > 1 else w * pixel
        image = image if n > 1 else h * row
        sizes = n, h, w, c, image, row, pixel
        kind = self.tensor.element_size(), int(self.to_tf32)
        return self.tensor.data_ptr(), *kind, *sizes, *self.first, *self.last, *self.steps, *self.box


_MAPS = TensorMap, PixelMap


def ceil_div(a, b):
    """a / b rounded up."""
    return -(-a // b)


class Config(FrozenDict):
    """A kernel's constants by name. It is hashed as the object that it is; config_of and | make the same object of the same
    constants. So what follows from a config alone is kept for all problems that may have it. What is no config, but a tile in
    the analysis' terms, is made of dict(config)."""

    __hash__ = object.__hash__

    def __or__(self, more):
        return _joined(self, *more.items())


def config_of(**constants):
    return _config(tuple(constants.items()))


@functools.lru_cache(KNOWN)
def _config(constants):
    return Config(constants)


@functools.lru_cache(KNOWN)
def _joined(config, *more):
    return config_of(**{**config, **dict(more)})


def configs_of(names, *sizes):
    """A config for each of the tuples `sizes`, whose values are of `names`, as "BM BN BK"."""
    return [config_of(**dict(zip(names.split(), values))) for values in sizes]


def in_order(space, target):
    """The space; in the emulation, where each built kernel takes time, backwards: the smallest tile first."""
    return space if target.is_gpu else space[::-1]


def resident(target, cluster, of_an_sm=1):
    """The blocks that a GPU holds in such clusters; without one three clusters."""
    return of_an_sm * reached_by(target.sms, cluster) // cluster * cluster or 3 * cluster


def holds(tensor, elements):
    """Whether that many elements, from the tensor's first on, are in its memory.

    cp.async takes whole chunks of 16 bytes, of which it reads the valid ones. A GPU does not fault on the rest of an aligned
    chunk, but compute-sanitizer and the emulation report an error if it is outside the tensor's memory.
    """
    return (tensor.storage_offset() + elements) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def _wire(argument):
    """The argument in the form of a bound kernel (common/binding.cuh)."""
    if isinstance(argument, torch.Tensor):
        return argument.data_ptr() if argument.is_cuda else (argument.data_ptr(), _room(argument))
    if isinstance(argument, _MAPS):
        return argument.wire()
    return 0 if argument is None else argument


def _with_address(argument):
    """The argument in the form of Launched.values."""
    if isinstance(argument, _MAPS):
        _, *rest = argument.wire()
        return FromAddress(argument.tensor, lambda address: (address, *rest))
    if isinstance(argument, torch.Tensor) and not argument.is_cuda:
        room = _room(argument)
        return FromAddress(argument, lambda address: (address, room))
    return 0 if argument is None else argument


def _room(tensor):
    """Bytes from a tensor's address to the end of its memory."""
    return max(0, tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size())


def _target(device):
    return Target.live(device) if device.type == "cuda" else Target.named("simt")


def _runs_on(tensor):
    if tensor.device.type not in ("cpu", "cuda"):
        validate.on_backend("the operands", tensor, "cpu", "emulation")


def _misses(target):
    return f"its CUDA kernels run on NVIDIA GPUs only, and this one is {target.isa}" if target.vendor == "amd" else None


def _build_seconds(launch):
    whole = launch.source.expressions
    return build.seconds(launch.source.header, launch.part or whole, whole, "cuda")


def _compiler():
    return f"CUDA {torch.version.cuda}"


LIBRARY = Library(
    "cuda_reference",
    target=_target,
    runs_on=_runs_on,
    misses=_misses,
    compiler=_compiler,
    build_for=lambda target: toolchain.build_for(target.arch),
    build_seconds=_build_seconds,
)
