"""Operations by another's designs: conv2d of one tap by matmul's, matmul of a row or column by gemv's, of fp32 by gemm's.

The other's designs have their own tests. These check that they get the right operands, and which calls they do not get.
"""

import dataclasses

import pytest
import torch

import cuda_reference.launch
import tritonkernels.launch
from tests.harness import (
    DEVICES,
    LAYOUTS,
    LIBRARIES,
    available_on,
    bits,
    cannot_run_here,
    channels_last,
    cropped,
    only,
    prepare,
    random,
    run_checked,
    run_where_taken,
    short,
)
from tritonkernels.choice import learned
from tritonkernels.design import as_dict
from tritonkernels.errors import UnknownDesignError, UnsupportedError
from tritonkernels.numerics import error_bound
from tritonkernels.operations.matmul.schemes import FEWEST, SCHEMES
from tritonkernels.target import Target

TRITON, CUDA = tritonkernels.launch.LIBRARY, cuda_reference.launch.LIBRARY
H200 = Target.named("h200")
KINDS = {
    "fp16": (torch.float16, {}),
    "bf16": (torch.bfloat16, {}),
    "tf32": (torch.float32, {"precision": "tf32"}),
    "ieee": (torch.float32, {}),
    "fp64": (torch.float64, {}),
}
on_devices = pytest.mark.parametrize("device", DEVICES)
each_package = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)


def reduced(library, op, to):
    """The names of the designs that the operation has by reduction to the other."""
    return [name for name in library.names(op) if name.startswith(f"{to}.")]


def runnable(library, op, to):
    """The cases of `reduced` that this machine can run."""
    absent = cannot_run_here(to) if library is TRITON else {}
    return [name for name in reduced(library, op, to) if name.removeprefix(f"{to}.") not in absent]


def first_that_takes(library, call):
    """The first of matmul's designs that accepts the call, by conv2d's name for it."""
    for design in library.designs("conv2d"):
        if design.name.startswith("matmul.") and not design.refuses(call.problem, library.target(call.result.device)):
            return design
    raise AssertionError("no design of matmul takes the call")


@short(lambda kind, layout: kind in ("fp16", "ieee") or layout is torch.clone)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", (torch.clone, channels_last, cropped, *LAYOUTS))
@each_package
@on_devices
def test_one_tap_is_a_matmul_of_any_strides(library, layout, kind, device):
    available_on(library, device)
    dtype, options = KINDS[kind]
    for image, filters in (((2, 16, 5, 8), (24, 16, 1, 1)), ((3, 7, 3, 5), (5, 7, 1, 1)), ((1, 70, 1, 66), (66, 70, 1, 1))):
        operands = [layout(random(*shape, dtype=dtype, device=device)) for shape in (image, filters)]
        bias = random(2 * filters[0], dtype=dtype, device=device)[::2]
        design = first_that_takes(library, prepare("conv2d", *operands, **options))
        run_checked(library, "conv2d", design.name, *operands, bias, **options)
        run_checked(library, "conv2d", design.name, *operands, **options)


@pytest.mark.long
@short(lambda layout: layout is channels_last)
@pytest.mark.parametrize("layout", (torch.clone, channels_last))
@each_package
@on_devices
def test_every_design_of_matmul_has_one_tap(library, layout, device, everything):
    available_on(library, device)
    taken = set()
    for name in reduced(library, "conv2d", "matmul"):
        for dtype, options in KINDS.values() if everything else (KINDS["fp16"], KINDS["ieee"]):
            image, filters = (random(*s, dtype=dtype, device=device) for s in ((2, 32, 4, 16), (64, 32, 1, 1)))
            taken |= {name} if run_where_taken(library, "conv2d", name, layout(image), filters, **options) else set()
    assert len(taken) > 2, "others are of other precisions"


@pytest.mark.parametrize("layout", (torch.clone, channels_last))
@each_package
@on_devices
def test_no_channels_give_the_bias(library, layout, device):
    available_on(library, device)
    shapes = (2, 0, 3, 4), (5, 0, 1, 1), (5,)
    input, weight, bias = (random(*shape, dtype=torch.float16, device=device) for shape in shapes)
    run_checked(library, "conv2d", "matmul.pipelined", layout(input), layout(weight), bias)


@pytest.mark.parametrize("layout", (torch.clone, channels_last, cropped))
@each_package
def test_operands_are_read_without_a_copy(library, layout):
    """One product of all pixels in channels_last, else a batch of images; pixels that are not evenly spaced are copied."""
    target = Target.named("sm_80")
    call = prepare("conv2d", *(layout(random(*s, dtype=torch.float16)) for s in ((2, 64, 8, 16), (64, 64, 1, 1))))
    design = {d.name: d for d in library.designs("conv2d")}["matmul.pipelined"]
    launches = design.launches(call.problem, next(iter(design.configs(call.problem, target))), *call.parts[0])
    assert [launch.name for launch in launches] == ["unfold"] * (layout is cropped) + ["pipelined"]


NO_MATMUL = {
    "patches of 1 x 2 that overlap": ((1, 4, 5, 5), (6, 4, 1, 2), {}),
    "patches of 2 x 1 that overlap": ((1, 4, 5, 5), (6, 4, 2, 1), {"stride": 2, "dilation": 2}),
    "has padding": ((1, 4, 5, 5), (6, 4, 1, 1), {"padding": (0, 1)}),
    "this has padding": ((1, 4, 1, 5), (6, 4, 2, 1), {"padding": "same"}),
    "groups": ((1, 4, 5, 5), (6, 2, 1, 1), {"groups": 2}),
}


@pytest.mark.parametrize("what", NO_MATMUL)
@each_package
def test_what_is_no_matmul(library, what):
    image, weight, options = NO_MATMUL[what]
    problem = prepare("conv2d", torch.empty(image, device="meta"), torch.empty(weight, device="meta"), **options).problem
    with pytest.raises(UnsupportedError, match=what):
        library.choose(problem, H200, "matmul.pipelined")


def product(m, n, k=1030, dtype=torch.float32, batch=(), device="cpu", layout=torch.clone):
    return [layout(random(*batch, *shape, dtype=dtype, device=device)) for shape in ((m, k), (k, n))]


ONE_ROW_OR_COLUMN = pytest.mark.parametrize("m, n", [(1, 37), (37, 1), (1, 1)])


@short(lambda m, n: m != n)
@ONE_ROW_OR_COLUMN
@each_package
@on_devices
def test_every_design_of_gemv_has_one_row_and_one_column(library, m, n, device):
    available_on(library, device)
    for name in runnable(library, "matmul", "gemv"):
        c = random(m, n, device=device)
        assert run_where_taken(library, "matmul", name, *product(m, n, device=device), c=c, alpha=-1.5, beta=0.5)
        run_where_taken(library, "matmul", name, *product(m, n, batch=(3,), dtype=torch.float16, device=device))
        run_where_taken(library, "matmul", name, *product(m, n, dtype=torch.float64, device=device), alpha=0.1)


@short(lambda m, n: m != n)
@ONE_ROW_OR_COLUMN
@pytest.mark.parametrize("layout", LAYOUTS)
@each_package
@on_devices
def test_one_row_or_column_of_any_strides(library, layout, m, n, device):
    available_on(library, device)
    for dtype, options in ((torch.float32, {"precision": "tf32"}), (torch.bfloat16, {})):
        a, b = product(m, n, k=37, dtype=dtype, device=device, layout=layout)
        run_checked(library, "matmul", "gemv.vectorized", a, b, bias=random(n, dtype=dtype, device=device), **options)
    a, b = product(m, n, k=37, batch=(2, 3), device=device, layout=layout)
    shared, c = random(m, 37, device=device), random(3, m, n, device=device)
    run_checked(library, "matmul", "gemv.vectorized", a, b, c=c, beta=2.0)
    run_checked(library, "matmul", "gemv.vectorized", shared, b, alpha=0.0, c=c)


@each_package
@on_devices
def test_every_design_of_gemm_has_fp32(library, device):
    available_on(library, device)
    for name in runnable(library, "matmul", "gemm"):
        a, b = product(33, 70, k=37, device=device)
        run_where_taken(library, "matmul", name, a, b, c=random(70, device=device), alpha=-1.5, beta=0.5)
        run_where_taken(library, "matmul", name, a, b, bias=random(70, device=device), alpha=-1.5)


NO_GEMV = {
    "2 x 5": ((2, 7), (7, 5), torch.float32, {}),
    "precision int8": ((1, 7), (7, 5), torch.int8, {}),
    "a result in torch.float32": ((1, 7), (7, 5), torch.float16, {"out_dtype": torch.float32}),
    "sums in fp16": ((1, 7), (7, 5), torch.float16, {"accumulate": "fp16"}),
    "an activation": ((1, 7), (7, 5), torch.float32, {"activation": "relu"}),
    "both a bias and C": ((1, 7), (7, 5), torch.float32, {"bias": (5,), "c": (5,)}),
    "a batch of 65536": ((65536, 1, 7), (7, 65536), torch.float16, {}),
}
NO_GEMM = {
    "precision fp16": ((5, 7), (7, 5), torch.float16, {}),
    "a batch of 2": ((2, 5, 7), (7, 5), torch.float32, {}),
    "both a bias and C": ((5, 7), (7, 5), torch.float32, {"bias": (5,), "c": (5,)}),
    "an activation": ((5, 7), (7, 5), torch.float32, {"activation": "silu"}),
}


@pytest.mark.parametrize("to, what", [("gemv", what) for what in NO_GEMV] + [("gemm", what) for what in NO_GEMM])
@each_package
def test_what_is_no_gemv_and_no_gemm(library, to, what):
    *shapes, dtype, options = {"gemv": NO_GEMV, "gemm": NO_GEMM}[to][what]

    def empty(shape):
        return torch.empty(shape, dtype=dtype, device="meta")

    options = {name: empty(value) if isinstance(value, tuple) else value for name, value in options.items()}
    problem = prepare("matmul", *map(empty, shapes), **options).problem
    with pytest.raises(UnsupportedError, match=what):
        library.choose(problem, H200, {"gemv": "gemv.vectorized", "gemm": "gemm.rasterized"}[to])


@only(lambda library, design: library is not TRITON or design not in cannot_run_here("matmul"))
@pytest.mark.parametrize("precision", ("tf32", *SCHEMES))
@pytest.mark.parametrize("design", ("gemv.vectorized", "gemm.rasterized", "cuda_cores"))
@each_package
@on_devices
def test_modes_in_ieee_arithmetic(library, design, precision, device):
    """The bits of "ieee" with its config, within its bound. So 1e30 with 1e-30, which fp16x3 refuses elsewhere, is right."""
    available_on(library, device)
    a, b = product(1, 37, k=FEWEST, device=device)  # of fewer products fp32 is another name of ieee
    a[0, :2], b[:2] = torch.tensor([1e30, 1e-30]), torch.tensor([[1e-30], [1e30]])
    config = as_dict(library.choose(prepare("matmul", a, b).problem, library.target(a.device), design)[1])
    result, _ = run_checked(library, "matmul", design, a, b, precision=precision, config=config)
    assert torch.equal(bits(result), bits(run_checked(library, "matmul", design, a, b, config=config)[0]))


@each_package
def test_the_bound_is_of_the_precision_that_a_design_multiplies_in(library):
    a = torch.empty(64, 4096, device="meta")
    problem = prepare("matmul", a, a.t(), precision="bf16x6").problem
    rounded = {d.name: d.as_rounded(problem) for d in library.designs("matmul") if not d.refuses(problem, H200)}
    assert rounded["planes"] == problem and rounded["gemm.rasterized"] == dataclasses.replace(problem, precision="ieee")
    assert error_bound(rounded["gemm.rasterized"]).relative > 2 * error_bound(problem).relative, (
        "a long sum of planes is closer"
    )


@each_package
def test_the_other_operation_s_designs_are_ranked_as_there(library, monkeypatch):
    """A row by gemv, fp32 by gemm, one tap by matmul: with the same seconds of the model, among the operation's own."""
    monkeypatch.setattr(learned, "trees_of", lambda *of: None)

    def empty(*shape, dtype=torch.float16):
        return torch.empty(shape, dtype=dtype, device="meta")

    def ranked(op, *tensors, of="", **options):
        found = library.ranking(prepare(op, *tensors, **options).problem, H200)
        return [(c.design.name.removeprefix(of), c.cost) for c in found if c.design.name.startswith(of)]

    row, matrix, column = empty(1, 4096), empty(4096, 512), empty(4096, 1)
    assert ranked("matmul", row, matrix, of="gemv.") == ranked("gemv", matrix.mT, row[0])
    assert ranked("matmul", matrix.mT, column, of="gemv.") == ranked("gemv", matrix.mT, column[:, 0])
    assert ranked("matmul", row.double(), matrix.double(), of="gemv.") == ranked("gemv", matrix.double().mT, row[0].double())
    assert not ranked("matmul", row, matrix, activation="relu", of="gemv.")
    square = empty(1024, 1024)
    of_gemm = [(name, cost) for name, cost in ranked("gemm", square.float(), square.float()) if "matmul." not in name]
    assert ranked("matmul", square.float(), square.float(), of="gemm.") == of_gemm != []
    lent = ranked("gemm", square.float(), square.float(), of="matmul.")
    assert (
        lent == [(name, cost) for name, cost in ranked("matmul", square.float(), square.float()) if name == "cuda_cores"] != []
    )
    assert not ranked("matmul", square, square, of="gemm.")
    filters, images = empty(512, 1024, 1, 1), empty(32, 1024, 14, 14)
    taps = dict(ranked("conv2d", images, filters, of="matmul."))
    plain = dict(ranked("matmul", filters[:, :, 0, 0], images.flatten(2)))
    assert taps and all(plain[name] == seconds for name, seconds in taps.items())


@each_package
def test_names(library):
    """No designs of a third operation; conv2d_input, without any of its own, has conv2d's contenders under their names."""
    own = {d.name for d in library.designs("matmul") if not d.is_lesson and "." not in d.name}
    assert {name.removeprefix("matmul.") for name in reduced(library, "conv2d", "matmul")} == own
    assert library.names("conv2d_input") == tuple(d.name for d in library.designs("conv2d") if not d.is_lesson)
    with pytest.raises(UnknownDesignError, match=r"matmul\.tensor_core is called matmul\.pipelined now"):
        library.choose(prepare("conv2d", torch.empty(1, 1, 1, 1), torch.empty(1, 1, 1, 1)).problem, H200, "matmul.tensor_core")
    with pytest.raises(UnknownDesignError, match=r"pointwise is called matmul\..* or matmul\.pipelined or .* now"):
        library.choose(prepare("conv2d", torch.empty(1, 1, 1, 1), torch.empty(1, 1, 1, 1)).problem, H200, "pointwise")
