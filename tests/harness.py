"""One checked call of a design, and the tensors to call it with. Every test of results goes through run_checked."""

import functools
import importlib

import pytest
import torch

import cuda_reference.launch
import tritonkernels.launch
from tests import cases
from tritonkernels import OPS, backend
from tritonkernels.target import Target

LIBRARIES = (cuda_reference.launch.LIBRARY, tritonkernels.launch.LIBRARY)
DEVICES = ("cpu", pytest.param("cuda", marks=pytest.mark.gpu))


def short(when):
    """A mark: of a test's cases `make test` runs those whose parameters `when` takes, by name; `make test-all` runs all."""
    return pytest.mark.short.with_args(when)


thorough = short(lambda: False)


def a_third(values, turn, everything):
    """The values that a test of a GPU has with its turn-th config: every third, for with each of them every config compiles for
    minutes; all in `make test-all` and the gate without --quick."""
    values = list(values)
    return values if everything else values[turn % 3 :: 3]


def long(when):
    """A mark: the cases whose parameters `when` takes, by name, take long, and go early."""
    return pytest.mark.long.with_args(when)


def only(when):
    """A mark: a test has only the cases whose parameters `when` takes, by name."""
    return pytest.mark.only.with_args(when)


class Size(tuple):
    """Among the shapes of operands, an argument that is a size itself."""


def built(shapes, make):
    """The arguments of a call: make(*shape) for each shape, sizes as they are."""
    return [tuple(shape) if isinstance(shape, Size) else make(*shape) for shape in shapes]


THROUGH = {  # of another operation's designs, those that stand for all of them: of float32, as the cases are
    ("tritonkernels", "gemm"): ("matmul.cuda_cores",),
    ("cuda_reference", "gemm"): ("matmul.cuda_cores",),
    ("tritonkernels", "conv2d"): ("matmul.pipelined",),
    ("cuda_reference", "conv2d"): ("matmul.cuda_cores",),
    ("tritonkernels", "conv2d_input"): ("depthwise", "implicit_gemm"),
    ("cuda_reference", "conv2d_input"): ("depthwise", "implicit_gemm"),
}
SMALL = {  # a problem of each operation
    "gemm": ((16, 16), (16, 16)),
    "gemv": ((16, 16), (16,)),
    "conv2d": ((1, 1, 8, 8), (1, 1, 3, 3)),
    "conv2d_input": (Size((1, 1, 8, 8)), (1, 1, 3, 3), (1, 1, 6, 6)),
    "conv2d_weight": ((1, 1, 8, 8), Size((1, 1, 3, 3)), (1, 1, 6, 6)),
    "conv2d_bias": ((1, 1, 6, 6),),
    "matmul": ((16, 16), (16, 16)),
}


CONVOLVED = torch.float32, torch.float16  # the first of these that a design takes is what shared tests have


@functools.cache
def taken(library, op, design):
    """(dtype, options) of a kind of call that the design takes, given a GPU: the first of cases.PRECISIONS and those after."""
    chosen = {d.name: d for d in library.designs(op)}[design]
    others = [(dtype, {}) for dtype in CONVOLVED]
    kinds = cases.PRECISIONS + cases.MORE_PRECISIONS if op == "matmul" else others
    for dtype, options in kinds:
        shapes, _ = suited(library, op, design, SMALL[op])
        call = prepare(op, *built(shapes, functools.partial(torch.empty, dtype=dtype)), **options)
        if chosen.refuses(call.problem, Target.named("h200")) is None:
            return dtype, options
    raise AssertionError(f"{design} takes none of the precisions in cases.py")


def suited(library, op, design, shapes, **options):
    """(shapes, options) of a call that the design takes: as they are, or of a convolution with a filter that suits it.

    Options are left out then, all or all but groups; none are added. One that takes a filter a channel gets one channel.
    """
    if op not in ("conv2d", "conv2d_input", "conv2d_weight"):
        return shapes, options
    image, weight, *others = shapes
    grouped = {"groups": options["groups"]} if "groups" in options else {}
    if op == "conv2d_weight":
        outputs = [size - taps + 1 for size, taps in zip(image[2:], weight[2:])]
        one = (image[0], 1, *image[2:]), type(weight)((weight[0], 1, *weight[2:])), (image[0], weight[0], *outputs)
        return _first_taken(library, op, design, ((shapes, options), (one, {})))

    def by(filter, image=image):
        outputs = [size - taps + 1 for size, taps in zip(image[2:], filter[2:])]
        return (image, filter, *([(filter[0],)] * len(others) if op == "conv2d" else [(image[0], filter[0], *outputs)]))

    c = weight[1] * options.get("groups", 1)
    one_channel = by((1, 1, 3, 3), type(image)((image[0], 1, *image[2:])))
    calls = ((shapes, options), (by((*weight[:2], 3, 3)), grouped), (by((weight[0], c, 1, 1)), {}), (one_channel, {}))
    return _first_taken(library, op, design, calls)


def _first_taken(library, op, design, calls):
    """The first (shapes, options) that the design takes on a GPU, of some type."""
    refuses = {d.name: d for d in library.designs(op)}[design].refuses
    for suiting, asked in calls:
        for dtype in CONVOLVED:
            make = functools.partial(torch.empty, device="meta", dtype=dtype)
            if refuses(prepare(op, *built(suiting, make), **asked).problem, Target.named("h200")) is None:
                return suiting, asked
    raise AssertionError(f"{design} takes none of these calls: {calls}")


@functools.cache
def cannot_run_here(op):
    """{design: why} of the Triton designs that the interpreter cannot run, whatever the problem; empty on a GPU."""
    if backend.device_type() != "cpu":
        return {}
    library = tritonkernels.launch.LIBRARY
    refusals = {}
    for design in (d for d in library.designs(op) if d.is_lesson or d.name in names(library, op)):
        dtype, options = taken(library, op, design.name)
        shapes, _ = suited(library, op, design.name, SMALL[op])
        call = prepare(op, *built(shapes, functools.partial(torch.empty, dtype=dtype)), **options)
        refusals[design.name] = design.refuses(call.problem, library.target(call.result.device))
    return {name: why for name, why in refusals.items() if why is not None}


def designs(*ops, compiled=False, kind="contender"):
    """(library, op, design) of every contender, or lesson, of both packages, as parameters; new ones are picked up from the
    ladders.

    Those that only a GPU runs are marked so, and counted where there is none; `compiled` is for tests that run no design. Of
    the designs of another operation, which are tested there, THROUGH names those that stand for all (test_reductions.py).
    """

    def marks(library, op, name):
        if compiled or library.package != "tritonkernels" or name not in cannot_run_here(op):
            return ()
        return (pytest.mark.gpu, pytest.mark.skip(reason=cannot_run_here(op)[name]))

    return [
        pytest.param(library, op, name, id=f"{library.package}-{op}-{name}", marks=marks(library, op, name))
        for library in LIBRARIES
        for op in ops or OPS
        for name in names(library, op, kind)
    ]


def names(library, op, kind="contender"):
    """The names of the operation's own designs that the package has, and of THROUGH's."""
    own = [rung.name for rung in library.operation(op).own if rung.is_in(library.package) and rung.kind == kind]
    return [*own, *(THROUGH.get((library.package, op), ()) if kind == "contender" else ())]


@functools.cache
def twins(library, op):
    """The names of the designs that launch the very kernels of one before them, with other numbers; none in cuda_reference."""
    seen, found = set(), set()
    mine = names(library, op) if library.package == "tritonkernels" else ()
    for design in (d for d in library.designs(op) if d.name in mine):
        dtype, options = taken(library, op, design.name)
        shapes, _ = suited(library, op, design.name, SMALL[op])
        call = prepare(op, *built(shapes, functools.partial(torch.empty, dtype=dtype)), **options)
        config = next(iter(design.configs(call.problem, Target.named("h200"))))
        kernels = tuple(launch.kernel.fn for launch in design.launches(call.problem, config, *call.parts[0]))
        found |= {design.name} if kernels in seen else set()
        seen.add(kernels)
    return found


one_of_each_program = short(lambda library, op, design: design not in twins(library, op))


def runnable_designs(*ops, kind="contender"):
    """The designs() that this machine can run."""
    return [p for p in designs(*ops, kind=kind) if not p.marks]


def changed(config, numbers):
    """The config with other numbers, legal or not."""
    from tritonkernels.config import config_of  # imports Triton

    if isinstance(config, dict):
        return config | numbers
    return config_of(config.kwargs | numbers, config.num_warps, config.num_stages, config.maxnreg)


def prepare(op, *args, **kwargs):
    return importlib.import_module(f"tritonkernels.{op}").prepare(*args, **kwargs)


def refusal(library, op, design, device, *shapes, dtype=torch.float32, **options):
    """The sentence by which the design refuses a call of these shapes on the device, or None. An H200 stands for a GPU."""
    problem = prepare(op, *built(shapes, functools.partial(torch.empty, dtype=dtype, device="meta")), **options).problem
    if device == "cpu":
        target = Target.named({"tritonkernels": "interpreter", "cuda_reference": "simt"}[library.package])
    else:
        target = Target.live(torch.device(device)) if torch.cuda.is_available() else Target.named("h200")
    return {d.name: d for d in library.designs(op)}[design].refuses(problem, target)


def available_on(library, device):
    """tritonkernels serves one backend per process; cuda_reference serves both kinds of tensors."""
    if library.package == "tritonkernels" and backend.device_type() != device:
        pytest.skip(f"the {backend.name()} backend serves {backend.device_type()} tensors")


def sentinel(dtype):
    return torch.nan if dtype.is_floating_point else torch.iinfo(dtype).min + 77


def gradient_call(op, name, make):
    """(args, kwargs) of a gradient of the convolution cases.CONVOLUTIONS[name], tensors by make(*shape)."""
    image, weight, kwargs = cases.CONVOLUTIONS[name]
    result = prepare("conv2d", torch.empty(image, device="meta"), torch.empty(weight, device="meta"), **kwargs).result
    args = {
        "conv2d_input": (Size(image), weight, result.shape),
        "conv2d_weight": (image, Size(weight), result.shape),
        "conv2d_bias": (result.shape,),
    }[op]
    return built(args, make), {} if op == "conv2d_bias" else kwargs


def poisoned(shape, dtype, device, aligned=None):
    """(out, buffer, where): out is buffer[where] of a larger poisoned buffer, strided; what is not out must stay poisoned.

    Its rows begin at multiples of 16 elements if `aligned`; by default where the sizes add up to an even number.
    """
    margins = [(1, 2)] * len(shape)
    if shape and (sum(shape) % 2 == 0 if aligned is None else aligned):
        margins[-1] = (16, 32 - shape[-1] % 16)
    buffer = torch.full([b + size + a for size, (b, a) in zip(shape, margins)], sentinel(dtype), dtype=dtype, device=device)
    where = tuple(slice(before, before + size) for size, (before, _) in zip(shape, margins))
    return buffer[where], buffer, where


def assert_poisoned_outside(buffer, where):
    outside = torch.ones(buffer.shape, dtype=torch.bool)
    outside[where] = False
    untouched = torch.full_like(buffer, sentinel(buffer.dtype))
    assert torch.equal(bits(buffer.cpu()[outside]), bits(untouched.cpu()[outside])), "something outside out was written"


def bits(t):
    """The raw bytes, so that NaN equals itself and -0 differs from 0."""
    return t.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8)


def run_checked(library, op, design, *args, config=None, **kwargs):
    """Call the design with a poisoned out, in the memory format of its own; check result, guard zone and inputs; return
    (result, verdict)."""
    call = prepare(op, *args, **kwargs)
    shape, dtype, device = call.result.shape, call.result.dtype, call.result.device
    if len(shape) == 4 and call.result.stride(1) == 1 and not call.result.is_contiguous():
        out, buffer, where = poisoned([shape[i] for i in (0, 2, 3, 1)], dtype, device)
        out = out.permute(0, 3, 1, 2)
    else:
        out, buffer, where = poisoned(shape, dtype, device)
    before = [bits(v).clone() for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
    checked = prepare(op, *args, out=out, **kwargs)
    result = library.run(checked, design, config)
    assert result is out
    after = [bits(v) for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
    assert all(torch.equal(b, a) for b, a in zip(before, after)), "an input was changed"
    verdict = library.judge(checked, design, config, *args, **kwargs)
    assert verdict.ok, f"{op} {design} {call.problem}: error {verdict.error:.3g} above the bound {verdict.bound:.3g}"
    assert_poisoned_outside(buffer, where)
    return result, verdict


def run_where_taken(library, op, design, *args, **kwargs):
    """Whether the design takes it, one of several calls of a test: it may refuse, which test_refusals.py holds it to. The test
    says which designs it takes none of."""
    call = prepare(op, *args, **kwargs)
    chosen = {d.name: d for d in library.designs(op)}[design]
    if chosen.refuses(call.problem, library.target(call.result.device)) is not None:
        return False
    run_checked(library, op, design, *args, **kwargs)
    return True


def moved(t, device, copy=False):
    """The tensor on a device with its strides and offset: `to` alone makes t[::2] contiguous and forgets an offset."""
    whole = t.as_strided((t.untyped_storage().nbytes() // t.itemsize,), (1,), 0)
    return whole.to(device, copy=copy).as_strided(t.shape, t.stride(), t.storage_offset())


# Ways to hold the same values in memory. Each takes a contiguous tensor of rank 2 or more and returns one equal to it.
def transposed(t):
    return t.transpose(-1, -2).contiguous().transpose(-1, -2)


def step_two(t):
    wide = torch.full((*t.shape[:-1], 2 * t.shape[-1]), sentinel(t.dtype), dtype=t.dtype, device=t.device)
    wide[..., ::2] = t
    return wide[..., ::2]


def offset_by_one(t):
    """Rows that start one element past an aligned address, with a pitch that is no multiple of a vector."""
    wide = torch.full((*t.shape[:-1], t.shape[-1] + 3), sentinel(t.dtype), dtype=t.dtype, device=t.device)
    wide[..., 1 : 1 + t.shape[-1]] = t
    return wide[..., 1 : 1 + t.shape[-1]]


def padded(t):
    """Aligned rows with something between them: vectors may be read, but not past the end of a row."""
    wide = torch.full((*t.shape[:-1], (t.shape[-1] // 16 + 1) * 16), sentinel(t.dtype), dtype=t.dtype, device=t.device)
    wide[..., : t.shape[-1]] = t
    return wide[..., : t.shape[-1]]


def first_dim_inside(t):
    """The first dimension innermost, as in CHWN."""
    return t.movedim(0, -1).contiguous().movedim(-1, 0)


# The same for images only.
def channels_last(t):
    return t.contiguous(memory_format=torch.channels_last)


def cropped(t):
    """Rows that are not evenly spaced."""
    wide = torch.full((*t.shape[:2], t.shape[2] + 2, t.shape[3] + 3), torch.nan, dtype=t.dtype, device=t.device)
    wide[:, :, 1:-1, 1:-2] = t
    return wide[:, :, 1:-1, 1:-2]


LAYOUTS = (transposed, step_two, offset_by_one, padded, first_dim_inside)


def random(*shape, dtype=torch.float32, device="cpu"):
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        return torch.randint(info.min, info.max + 1, shape, dtype=dtype).to(device)
    return torch.randn(*shape, dtype=torch.float64 if dtype == torch.float64 else torch.float32).to(dtype).to(device)


def rounded_to_tf32(t):
    """fp32 with 10 bits of mantissa, to nearest; no ties, of which GPUs do not round all alike."""
    assert not (t.view(torch.int32) & 0x1FFF == 0x1000).any(), "use without_ties"
    return ((t.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)


def without_ties(t):
    """The numbers, of which none is in the middle between two of tf32."""
    return (t.view(torch.int32) | 1).view(torch.float32)


def small_integers(*shape, dtype=torch.float32, device="cpu"):
    """Integers whose products and sums are exact in every precision, so that the result must be equal, not close."""
    return torch.randint(-4, 5, shape).to(dtype).to(device)
