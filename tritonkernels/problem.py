"""Problem: the sizes, dtypes and layout of a call, with the FLOPs and compulsory bytes that follow from them.

Problems are immutable and do not depend on tensors' contents, designs or machines. So the choice of a design and a config is a
pure function that runs, and is tested, anywhere.
"""

import contextlib
import dataclasses
import functools
import math
from dataclasses import dataclass

import torch

FLOAT_PRECISION = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "ieee", torch.float64: "fp64"}

PACKED = {"int4": 2, "uint4": 2, "b1_xor": 8, "b1_and": 8}  # precision -> elements a byte, the first in its low bits


def dtype_name(dtype):
    """torch.float16 -> "float16"."""
    return str(dtype).removeprefix("torch.")


def layout_of(tensor):
    """Layout class of a matrix (the last two dimensions): "row", "col" or "strided" (no unit stride)."""
    rows, cols = tensor.shape[-2:]
    row_stride, col_stride = tensor.stride()[-2:]
    if holds(col_stride == 1) or holds(cols <= 1):
        return "row"
    return "col" if holds(row_stride == 1) or holds(rows <= 1) else "strided"


def differ(size, other):
    """Whether two sizes do; where only data decides, torch.compile takes them for the same and checks it when the code runs."""
    if holds(unequal := size != other):
        return True
    if not (isinstance(unequal, torch.Tensor) or (is_known(size) and is_known(other))):
        torch._check(size == other)
    return False


def address(tensor):
    """Where its first element is in memory; 0 of one of torch's fake tensors, which have no memory."""
    return 0 if isinstance(tensor, torch._subclasses.FakeTensor) else tensor.data_ptr()


def is_known(size):
    """Whether it is a number, not one of torch's symbols: what is asked of these becomes a condition of what torch traces, and
    nothing is launched for them."""
    return isinstance(size, int)


def holds(condition):
    """A condition on sizes; False where only data decides, as in torch.compile: the call itself asks again, with numbers."""
    if isinstance(condition, bool) and not torch.compiler.is_compiling():  # which takes a symbol for a bool, too
        return condition
    if isinstance(condition, torch.Tensor):  # torch.jit's, whose sizes are tensors while it traces: what holds for its inputs
        with _untraced():
            return bool(condition)
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # imports sympy

    return guard_or_false(condition)


@contextlib.contextmanager
def _untraced():
    """Suspends a trace of torch.jit, which warns of each tensor that is taken for a bool."""
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        yield
    finally:
        torch._C._set_tracing_state(state)


def is_aligned(tensor):
    """Whether every line of a tensor begins at a multiple of 16 bytes, as bulk copies require."""
    strides = (s for s, size in zip(tensor.stride(), tensor.shape) if is_known(s) and s != 1 and holds(size > 1))
    return address(tensor) % 16 == 0 and all(stride * tensor.element_size() % 16 == 0 for stride in strides)


def bound_idle_strides(tensor):
    """The tensor with no stride of a dimension of one beyond its memory, rounded up to 16 elements.

    Such a stride leads nowhere and may be any number, but TMA takes none of 2^40 bytes, and kernels multiply it by indices.
    """
    if tensor is None or not all(map(is_known, (*tensor.shape, *tensor.stride()))):
        return tensor
    strides = tensor.stride()
    most = -(-max((size * stride for size, stride in zip(tensor.shape, strides) if size > 1), default=1) // 16) * 16
    bounded = tuple(min(stride, most) if size == 1 else stride for size, stride in zip(tensor.shape, strides))
    return tensor if bounded == strides else tensor.as_strided(tensor.shape, bounded)


def rows_are_whole_chunks(t):
    """Whether TMA may store (..., rows, columns): it writes whole chunks of 16 bytes, and would overwrite up to 15 bytes behind
    a row of any other length."""
    return t.shape[-1] * t.element_size() % 16 == 0


LARGEST_TILE = 1024  # no tile is longer: an index runs at most this far past the end, where it is masked


def needs_wide_offsets(*tensors):
    """Whether an element offset in a kernel, masked lanes included, may exceed 32 bits."""
    given = (t for t in tensors if t is not None)
    ends = (sum((size + LARGEST_TILE) * stride for size, stride in zip(t.shape, t.stride()) if holds(size > 1)) for t in given)
    return any(is_known(end) and end >= 2**31 for end in ends)


def hashed_once(cls):
    """A frozen dataclass that keeps its hash: for every config a choice looks up what it knows of problem and target."""
    cls = dataclass(frozen=True)(cls)
    hash_of_fields = cls.__hash__

    def hash_once(self):
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash_of_fields(self))
            return self._hash

    def state_without_hash(self):
        """The state without the hash, which differs in another process."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    cls.__hash__, cls.__getstate__ = hash_once, state_without_hash
    return cls


@dataclass(frozen=True)
class Problem:
    """What all problems have in common; `dtype` is the inputs' type, `out_dtype` the result's."""

    dtype: torch.dtype
    out_dtype: torch.dtype
    precision: str  # how products are rounded: a key of numerics.MODES
    wide: bool  # some offset needs 64 bits

    op = ""
    b_split = False  # the planes of B are given (operations/matmul/split.py)
    is_gated = False  # pairs of neighbouring sums make a result: GATED

    @property
    def flops(self):
        """Floating-point (or integer) operations; a multiply-add counts as 2."""
        raise NotImplementedError

    @property
    def bytes(self):
        """Compulsory traffic: each input read once, each output written once."""
        raise NotImplementedError

    @property
    def terms(self):
        """Products summed into one element of the result."""
        raise NotImplementedError

    @property
    def row_bytes(self):
        """{name: bytes} of the rows, in memory, of a product's operands and result."""
        return {}

    @property
    def extras(self):
        """What it has beyond the plain problem of its operation, which lessons take (lesson.py), in words."""
        return ()

    @property
    def as_timed(self):
        """The problem that takes as long, whose records say how long this one takes."""
        return self

    @property
    def intensity(self):
        """FLOP per compulsory byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def facts(self):
        """The fields' values by name, without those that have a default and are at it: what is recorded of a problem
        stays the same when its kind gains such a field."""
        values = {field: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {field.name: value for field, value in values.items() if value != field.default}

    def describe(self):
        """The fields as a dict of JSON types."""
        return {k: dtype_name(v) if isinstance(v, torch.dtype) else v for k, v in self.facts.items()}


def _row_bytes(problem, per_byte=1):
    """row_bytes of a product with so many elements of K in a byte."""
    m, n, k, itemsize = problem.m, problem.n, problem.k // per_byte, problem.dtype.itemsize
    a, b = k if problem.a_layout == "row" else m, n if problem.b_layout == "row" else k
    return {"a": a * itemsize, "b": b * itemsize, "out": n * problem.out_dtype.itemsize}


@hashed_once
class GemmProblem(Problem):
    """out (M, N) = alpha * A (M, K) B (K, N) + beta * C (M, N)."""

    m: int
    n: int
    k: int
    alpha: float
    beta: float
    a_layout: str
    b_layout: str

    op = "gemm"

    @property
    def flops(self):
        return 2 * self.m * self.n * self.k + (3 if self.beta else 1) * self.m * self.n

    @property
    def bytes(self):
        written_and_read = 2 if self.beta else 1
        elements = self.m * self.k + self.k * self.n + written_and_read * self.m * self.n
        return elements * self.dtype.itemsize

    @property
    def row_bytes(self):
        return _row_bytes(self)

    @property
    def terms(self):
        return self.k


@hashed_once
class GemvProblem(Problem):
    """out (batch, M) = alpha * scale (M,) * A (batch, M, N) x (batch, N) + beta * y (batch, M); `dtype` is x's.

    A and x may each be shared by the whole batch.
    """

    batch: int
    m: int
    n: int
    alpha: float
    beta: float
    a_dtype: torch.dtype
    a_layout: str
    a_shared: bool
    x_shared: bool
    scaled: bool  # one scale per row of an int8 A

    op = "gemv"

    @property
    def rows(self):
        """Inner products in the whole batch."""
        return self.batch * self.m

    @property
    def extras(self):
        found = {f"a batch of {self.batch}": self.batch != 1, "a matrix of another type than x": self.a_dtype != self.dtype}
        return tuple(what for what, is_so in found.items() if is_so)

    @property
    def flops(self):
        return (2 * self.n + (3 if self.beta else 1) + self.scaled) * self.rows

    @property
    def matrix_bytes(self):
        """A's bytes, almost all of the traffic."""
        return (1 if self.a_shared else self.batch) * self.m * self.n * self.a_dtype.itemsize

    @property
    def bytes(self):
        vectors = (1 if self.x_shared else self.batch) * self.n + (2 if self.beta else 1) * self.rows
        return self.matrix_bytes + vectors * self.dtype.itemsize + 4 * self.m * self.scaled

    @property
    def terms(self):
        return self.n


@hashed_once
class Conv2dProblem(Problem):
    """out (N, K, P, Q) = activation(input (N, C, H, W) * weight (K, C / groups, R, S) + bias (K,) + residual (N, K, P, Q)).

    The product is a cross-correlation.
    """

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    p: int
    q: int
    stride: tuple[int, int]
    padding: tuple[int, int]  # above and left; padding below and right follows from p and q
    dilation: tuple[int, int]
    groups: int
    has_bias: bool
    channels_last: bool
    activation: str | None = None  # "relu", "gelu", "silu"
    residual: bool = False

    op = "conv2d"

    @property
    def outputs(self):
        """Elements of the result."""
        return self.n * self.k * self.p * self.q

    @property
    def extras(self):
        found = {
            f"{self.groups} groups": self.groups != 1,
            f"precision {self.precision}": self.precision != FLOAT_PRECISION.get(self.dtype),
            **dict.fromkeys(self.after, True),
        }
        return tuple(what for what, is_so in found.items() if is_so)

    @property
    def after(self):
        """What is done to a result after the convolution and its bias, in words."""
        found = {"a residual": self.residual, "an activation": self.activation is not None}
        return tuple(what for what, is_so in found.items() if is_so)

    @property
    def flops(self):
        """The operations of the convolution or of a gradient, which has the same products; an activation is not counted."""
        per_output = 2 * (self.c // self.groups) * self.r * self.s + self.has_bias + self.residual
        return per_output * self.n * self.k * self.p * self.q

    @property
    def bytes(self):
        """The bytes of the convolution or of a gradient: two of the three tensors are read, the third is written, and a
        residual is read."""
        images = self.n * (self.c * self.h * self.w + (1 + self.residual) * self.k * self.p * self.q)
        return (images + self.k * (self.c // self.groups * self.r * self.s + self.has_bias)) * self.dtype.itemsize

    @property
    def terms(self):
        return self.c // self.groups * self.r * self.s


@hashed_once
class Conv2dInputProblem(Conv2dProblem):
    """The gradient of a Conv2dProblem with respect to its input, (N, C, H, W), from grad_output (N, K, P, Q)."""

    op = "conv2d_input"

    @property
    def outputs(self):
        return self.n * self.c * self.h * self.w

    @property
    def terms(self):
        """Along an axis, an input has products with at most every stride / gcd(stride, dilation)-th tap."""
        r, s = (-(-t // (step // math.gcd(step, d))) for t, step, d in zip((self.r, self.s), self.stride, self.dilation))
        return self.k // self.groups * r * s


@hashed_once
class Conv2dWeightProblem(Conv2dProblem):
    """The gradient of a Conv2dProblem with respect to its weight, (K, C / groups, R, S), from grad_output (N, K, P, Q)."""

    op = "conv2d_weight"

    @property
    def rows(self):
        """Rows of a group's weight as a matrix."""
        return self.k // self.groups

    @property
    def columns(self):
        """Columns of it: (c, r, s)."""
        return self.c // self.groups * self.r * self.s

    @property
    def outputs(self):
        return self.k * self.columns

    @property
    def terms(self):
        return self.n * self.p * self.q


@hashed_once
class Conv2dBiasProblem(Problem):
    """The gradient of a convolution with respect to its bias, (K,): the sums of grad_output (N, K, P, Q) over N, P and Q."""

    n: int
    k: int
    p: int
    q: int
    channels_last: bool

    op = "conv2d_bias"

    @property
    def outputs(self):
        return self.k

    @property
    def flops(self):
        return self.terms * self.k

    @property
    def bytes(self):
        return (self.terms + 1) * self.k * self.dtype.itemsize

    @property
    def terms(self):
        return self.n * self.p * self.q


# A gated linear unit -> the activation of its gates. Names of Shazeer, "GLU Variants Improve Transformer", 2020
GATED = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu"}


@hashed_once
class MatmulProblem(Problem):
    """out (batch, M, N) = activation(factor * A (batch, M, K) B (batch, K, N) + beta * C (batch, M, N) + bias (N,)).

    The factor is alpha, of scaled operands alpha * scale_a * scale_b. Each operand may be shared by the whole batch. K counts
    elements, also where a byte packs several (PACKED). Of a GATED activation the result has N / 2 columns.
    """

    batch: int
    m: int
    n: int
    k: int
    a_shared: bool
    b_shared: bool
    a_layout: str
    b_layout: str
    aligned: bool  # bases and pitches of A and B are multiples of 16 bytes
    accumulate: str  # the type of the sums: "fp32", "fp16", "fp64" or "int32"; "fast": those of fp8's tensor cores
    alpha: float
    beta: float
    bias: bool
    activation: str | None  # "relu", "gelu", "silu", or one of GATED
    b_dtype: torch.dtype | None = None  # of B where it is another than A's, as fp8 has two
    scales: str | None = None  # of A, B or both: "matrix" where each matrix has one, "rows" where rows or columns have
    b_split: bool = False

    op = "matmul"

    @property
    def as_timed(self):
        return _in_fp16x3(self) if self.precision == "fp32" else self

    @property
    def is_gated(self):
        return self.activation in GATED

    @property
    def columns(self):
        """How many the result has."""
        return self.n // 2 if self.is_gated else self.n

    @property
    def fused(self):
        """The names of the arguments that add to the plain product."""
        given = {
            "alpha": self.alpha != 1,
            "beta": self.beta != 0,
            "bias": self.bias,
            "activation": self.activation is not None,
            "scales": self.scales is not None,
        }
        return tuple(name for name, is_given in given.items() if is_given)

    @property
    def extras(self):
        found = {
            f"a batch of {self.batch}": self.batch != 1,
            f"precision {self.precision}": self.precision != FLOAT_PRECISION.get(self.dtype, self.precision),
            f"sums in {self.accumulate}": self.accumulate != "fp32",
            "a bias": self.bias,
            "an activation": self.activation is not None,
            "scales": self.scales is not None,
        }
        return tuple(what for what, is_so in found.items() if is_so)

    @property
    def flops(self):
        scaled = self.alpha != 1 or self.scales is not None
        per_element = 2 * self.k + scaled + 2 * (self.beta != 0) + self.bias  # an activation is not counted
        return per_element * self.batch * self.m * self.n

    @property
    def bytes(self):
        a = (1 if self.a_shared else self.batch) * self.m * self.k
        b = (1 if self.b_shared else self.batch) * self.k * self.n
        results = (2 if self.beta else 1) * self.batch * self.m * self.columns + self.bias * self.n
        scales = 4 * (self.m + self.n) if self.scales == "rows" else 0
        return (a + b) * self.dtype.itemsize // PACKED.get(self.precision, 1) + results * self.out_dtype.itemsize + scales

    @property
    def row_bytes(self):
        of_operands = _row_bytes(self, PACKED.get(self.precision, 1))
        return of_operands | {"out": self.columns * self.out_dtype.itemsize}

    @property
    def terms(self):
        return self.k


@functools.lru_cache(256)
def _in_fp16x3(problem):
    return dataclasses.replace(problem, precision="fp16x3")
