"""Every design of every operation of both packages, against float64 within the derived bound. New designs are picked up."""

import functools
import math

import pytest
import torch

from tests import cases
from tests.covering import axes
from tests.harness import (
    DEVICES,
    LAYOUTS,
    LIBRARIES,
    SMALL,
    Size,
    available_on,
    bits,
    built,
    designs,
    first_dim_inside,
    long,
    one_of_each_program,
    only,
    padded,
    poisoned,
    prepare,
    random,
    refusal,
    run_checked,
    run_where_taken,
    sentinel,
    short,
    small_integers,
    suited,
    taken,
    transposed,
    twins,
)

pytestmark = pytest.mark.parametrize("device", DEVICES)


# Calls that a design refuses are tested in test_refusals.py and left out here.
@only
def takes_the_kind(library, op, design, device, dtype, kwargs):
    return refusal(library, op, design, device, *SMALL[op], dtype=dtype, **kwargs) is None


@only
def takes_float64(library, op, design, device):
    return refusal(library, op, design, device, *SMALL[op], dtype=torch.float64) is None


@only
def takes_the_geometry(library, op, design, device, name):
    image, weight, options = cases.CONVOLUTIONS[name]
    if weight[0] == 0:  # another filter may suit, but not another image
        return suited(library, op, design, (image, weight))[0][0] == image
    return refusal(library, op, design, device, image, weight, **options) is None


@only
def takes_the_shape(library, op, design, device, name):
    dtype, options = taken(library, op, design)
    return refusal(library, op, design, device, *cases.MATMUL_SHAPES[name], dtype=dtype, **options) is None


# In cuda_reference each type of result is a build: `make test` has only fp32 results of fp16.
one_build_of_a_result = short(
    lambda library, dtype, kwargs: library.package == "tritonkernels" or (dtype, [*kwargs]) != (torch.bfloat16, ["out_dtype"])
)


FEW_SIZES = ((5, 3, 7), (127, 129, 9), (0, 3, 4), (3, 2), (6, 129), (0, 5))  # for designs that launch another's kernels


def size_id(sizes):
    return "x".join(map(str, sizes))


@short(lambda library, op, design, sizes: sizes in FEW_SIZES or design not in twins(library, op))
@pytest.mark.parametrize("library, op, design", designs("gemm"))
@pytest.mark.parametrize("sizes", cases.GEMM_SIZES + cases.EMPTY_GEMMS, ids=size_id)
def test_gemm_sizes(library, op, design, device, sizes):
    available_on(library, device)
    m, n, k = sizes
    a, b, c = random(m, k, device=device), random(k, n, device=device), random(m, n, device=device)
    run_checked(library, op, design, a, b)
    run_checked(library, op, design, a, b, c, alpha=-1.5, beta=0.5)


@one_of_each_program
@pytest.mark.parametrize("library, op, design", designs("gemm"))
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
def test_gemm_layouts(library, op, design, device, layout):
    available_on(library, device)
    a, b, c = random(37, 21, device=device), random(21, 43, device=device), random(37, 43, device=device)
    run_checked(library, op, design, layout(a), b)
    run_checked(library, op, design, a, layout(b))
    run_checked(library, op, design, layout(a), layout(b), layout(c), beta=2.0)


@one_of_each_program
@pytest.mark.parametrize("library, op, design", designs("gemm"))
def test_gemm_expanded_operands(library, op, design, device):
    available_on(library, device)
    row, column = random(1, 19, device=device), random(19, 1, device=device)
    run_checked(library, op, design, row.expand(33, 19), column.expand(19, 35), random(1, device=device), beta=1.0)
    run_checked(library, op, design, random(33, 19, device=device), column.expand(19, 35), random(35, device=device), beta=1.0)
    run_checked(library, op, design, row.expand(33, 19), random(19, 35, device=device), random(33, 1, device=device), beta=1.0)


# alpha and beta of float64: fp32 would round these, or make them infinite or 0.
DOUBLES = ((0.1, -1 / 3), (1e39, 1e-46), (math.nan, 1.0), (1.0, -math.inf), (0.0, 1e-300))


@short(lambda sizes: sizes in FEW_SIZES)
@only(lambda design, sizes: design is None or sizes in FEW_SIZES)
@pytest.mark.parametrize("design", (None, "matmul.pipelined", "matmul.split_k"), ids=str)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
@pytest.mark.parametrize("sizes", cases.GEMM_SIZES + cases.EMPTY_GEMMS, ids=size_id)
def test_gemm_of_doubles(library, design, device, sizes):
    """By matmul's designs, the default choice first."""
    available_on(library, device)
    m, n, k = sizes
    a, b, c = (random(*shape, dtype=torch.float64, device=device) for shape in ((m, k), (k, n), (m, n)))
    for alpha, beta in DOUBLES:
        run_checked(library, "gemm", design, a, transposed(b), c, alpha=alpha, beta=beta)
    run_checked(library, "gemm", design, transposed(a), b)


@pytest.mark.parametrize("library, op, design", designs("gemm"))
def test_gemm_never_reads_c_when_beta_is_zero(library, op, design, device):
    available_on(library, device)
    a, b = random(20, 30, device=device), random(30, 10, device=device)
    nan = torch.full((20, 10), torch.nan, device=device)
    result, _ = run_checked(library, op, design, a, b, nan, alpha=0.75, beta=0.0)
    assert torch.isfinite(result).all()
    with_nan = prepare(op, a, b, nan, beta=1.0)
    assert torch.isnan(library.run(with_nan, design)).all(), "beta = 1 must read C"


@pytest.mark.parametrize("library, op, design", designs("gemm"))
def test_gemm_alpha_zero_keeps_beta_c(library, op, design, device):
    available_on(library, device)
    a, b, c = random(20, 30, device=device), random(30, 10, device=device), random(20, 10, device=device)
    result, _ = run_checked(library, op, design, a, b, c, alpha=0.0, beta=1.0)
    assert torch.equal(result, c)


@short(lambda library, op, design, sizes: sizes in FEW_SIZES or design not in twins(library, op))
@pytest.mark.parametrize("library, op, design", designs("gemv"))
@pytest.mark.parametrize("sizes", cases.GEMV_SIZES + cases.EMPTY_GEMVS, ids=size_id)
def test_gemv_sizes(library, op, design, device, sizes):
    available_on(library, device)
    m, n = sizes
    a, x, y = random(m, n, device=device), random(n, device=device), random(m, device=device)
    run_checked(library, op, design, a, x)
    run_checked(library, op, design, a, x, y, alpha=-1.5, beta=0.5)


@one_of_each_program
@pytest.mark.parametrize("library, op, design", designs("gemv"))
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
def test_gemv_layouts(library, op, design, device, layout):
    available_on(library, device)
    a, x, y = random(37, 141, device=device), random(282, device=device)[1::2], random(74, device=device)[::2]
    run_checked(library, op, design, layout(a), x)
    run_checked(library, op, design, layout(a), x[:1].expand(141), y, beta=-1.0)
    run_checked(library, op, design, a[:1].expand(37, 141), x, y[:1], beta=-1.0)


@short(lambda sizes: sizes in FEW_SIZES)
@takes_float64
@pytest.mark.parametrize("library, op, design", designs("gemv"))
@pytest.mark.parametrize("sizes", cases.GEMV_SIZES + cases.EMPTY_GEMVS, ids=size_id)
def test_gemv_of_doubles(library, op, design, device, sizes):
    available_on(library, device)
    m, n = sizes
    a, x, y = (random(*shape, dtype=torch.float64, device=device) for shape in ((m, n), (n,), (m,)))
    for alpha, beta in DOUBLES:
        run_checked(library, op, design, a, x, y, alpha=alpha, beta=beta)
    run_checked(library, op, design, transposed(a), x)
    run_checked(library, op, design, padded(a), x)


@pytest.mark.parametrize("library, op, design", designs("gemv"))
def test_gemv_never_reads_y_when_beta_is_zero(library, op, design, device):
    available_on(library, device)
    a, x, nan = random(20, 30, device=device), random(30, device=device), torch.full((20,), torch.nan, device=device)
    result, _ = run_checked(library, op, design, a, x, nan, beta=0.0)
    assert torch.isfinite(result).all()
    assert torch.isnan(library.run(prepare(op, a, x, nan, beta=1.0), design)).all()


@short(lambda design, name: "one filter" not in name or "depthwise" in design)
@takes_the_geometry
@pytest.mark.parametrize("library, op, design", designs("conv2d"))
@pytest.mark.parametrize("name", cases.CONVOLUTIONS)
def test_conv2d_geometries(library, op, design, device, name):
    available_on(library, device)
    input_shape, weight_shape, kwargs = cases.CONVOLUTIONS[name]
    input, weight, bias = (
        random(*input_shape, device=device),
        random(*weight_shape, device=device),
        random(weight_shape[0], device=device),
    )
    if weight_shape[0]:  # torch, the reference, refuses to have no output channels
        run_checked(library, op, design, input, weight, **kwargs)
        run_checked(library, op, design, input, weight, bias, **kwargs)
    else:
        (_, weight_shape), _ = suited(library, op, design, (input_shape, weight_shape))
        call = prepare(op, input, random(*weight_shape, device=device))
        assert library.run(call, design) is call.result and call.result.shape[:2] == (2, 0)


@short(lambda library, layout: library.package == "cuda_reference" or layout in (transposed, first_dim_inside))
@pytest.mark.parametrize("library, op, design", designs("conv2d"))
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
def test_conv2d_layouts(library, op, design, device, layout):
    available_on(library, device)
    make = functools.partial(random, dtype=taken(library, op, design)[0], device=device)
    input, weight, bias = make(3, 4, 13, 17), make(6, 2, 3, 3), make(12)[::2]
    run = functools.partial(run_where_taken, library, op, design)
    run(layout(input), weight, bias, padding=1, groups=2)
    run(input, layout(weight), bias[:1].expand(6), padding=1, groups=2)
    run(input[:1].expand(3, 4, 13, 17), weight, groups=2)
    ran = []
    for taps in (1, 3):
        weight = make(6, 4, taps, taps)
        ran += run(layout(input), layout(weight), bias[:6]), run(input[:1].expand(3, 4, 13, 17), weight)
    assert any(ran) or run(layout(input), layout(make(4, 1, 3, 3)), bias[:4], groups=4)


@pytest.mark.parametrize("library, op, design", designs("conv2d"))
def test_conv2d_returns_the_memory_format_of_its_input(library, op, design, device):
    available_on(library, device)
    (image, filters), options = suited(library, op, design, ((2, 3, 9, 8), (4, 3, 3, 2)))
    dtype, _ = taken(library, op, design)
    input, weight = (random(*shape, dtype=dtype, device=device) for shape in (image, filters))
    for x in (input, input.to(memory_format=torch.channels_last)):
        call = prepare(op, x, weight, **options)
        result = library.run(call, design)
        of_torch = torch.nn.functional.conv2d(x.cpu(), weight.cpu(), **options)  # on a GPU it has others for 1 x 1
        assert result.stride() == of_torch.stride()
        assert library.judge(call, design, None, x, weight, **options).ok


@short(
    lambda dtype, kwargs, sizes: (
        sizes in cases.FEWER_MATMUL_SIZES[: 3 if not kwargs else 2] or (not kwargs and dtype == torch.float16)
    )
)
@one_build_of_a_result
@takes_the_kind
@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize(
    "dtype, kwargs, sizes",
    [(*precision, sizes) for precision in cases.PRECISIONS for sizes in cases.MATMUL_SIZES]
    + [(*precision, sizes) for precision in cases.MORE_PRECISIONS for sizes in cases.FEWER_MATMUL_SIZES],
    ids=lambda x: size_id(x) if isinstance(x, tuple) else str(x),
)
@axes("dtype, kwargs", "sizes")
def test_matmul_sizes(library, op, design, device, sizes, dtype, kwargs):
    available_on(library, device)
    m, n, k = sizes
    a, b = random(m, k, dtype=dtype, device=device), random(k, n, dtype=dtype, device=device)
    run_checked(library, op, design, a, b, **kwargs)


@takes_the_shape
@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize("name", cases.MATMUL_SHAPES)
def test_matmul_shapes(library, op, design, device, name):
    available_on(library, device)
    dtype, options = taken(library, op, design)
    a, b = (random(*shape, dtype=dtype, device=device) for shape in cases.MATMUL_SHAPES[name])
    run_checked(library, op, design, a, b, **options)
    assert prepare(op, a, b, **options).result.shape == torch.matmul(a.float(), b.float()).shape


@one_build_of_a_result
@short(lambda dtype, kwargs, layout: layout is transposed or (not kwargs and dtype in (torch.float16, torch.float32)))
@takes_the_kind
@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize(
    "dtype, kwargs, layout",
    [(*precision, layout) for precision in cases.PRECISIONS for layout in LAYOUTS]
    + [(*precision, layout) for precision in cases.MORE_PRECISIONS for layout in LAYOUTS[:2]],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
@axes("dtype, kwargs", "layout")
def test_matmul_layouts(library, op, design, device, layout, dtype, kwargs):
    available_on(library, device)
    a, b = random(3, 19, 35, dtype=dtype, device=device), random(3, 35, 21, dtype=dtype, device=device)
    run_checked(library, op, design, layout(a), b, **kwargs)
    run_checked(library, op, design, a, layout(b), **kwargs)
    run_checked(library, op, design, layout(a), b[:1].expand(3, 35, 21), **kwargs)


@pytest.mark.parametrize("library, op, design", designs("matmul"))
def test_matmul_of_aligned_rows_in_batches_that_are_not(library, op, design, device):
    """With 8 bytes between the matrices of a batch, which are not aligned to 16 for TMA and cp.async."""
    available_on(library, device)
    dtype, options = taken(library, op, design)

    def apart(t):
        rows, columns = t.shape[1:]
        step = rows * columns + 8 // t.element_size()
        memory = torch.full((len(t) * step,), sentinel(t.dtype), dtype=t.dtype, device=device)
        return memory.as_strided(t.shape, (step, columns, 1)).copy_(t), memory

    together = random(3, 24, 64, dtype=dtype, device=device), random(3, 64, 16, dtype=dtype, device=device)
    out, around = apart(torch.zeros(3, 24, 16, dtype=prepare(op, *together, **options).result.dtype))
    for operands in ((apart(together[0])[0], together[1]), (together[0], apart(together[1])[0])):
        call = prepare(op, *operands, out=out, **options)
        library.run(call, design)
        verdict = library.judge(call, design, None, *operands, **options)
        assert verdict.ok, verdict
    out.fill_(sentinel(out.dtype))
    assert torch.equal(bits(around), bits(torch.full_like(around, sentinel(out.dtype)))), "memory outside of out was written"


@short(lambda dtype, name: dtype == torch.bfloat16 or name == "all")
@takes_the_kind
@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize("name", cases.EPILOGUES)
@pytest.mark.parametrize("dtype, kwargs", [(t, {}) for t in (torch.bfloat16, torch.float64, torch.float8_e4m3fn)], ids=str)
def test_matmul_epilogues(library, op, design, device, name, dtype, kwargs):
    available_on(library, device)
    options, reads_c, has_bias = cases.EPILOGUES[name]
    a, b = random(2, 37, 33, dtype=dtype, device=device), random(2, 33, 21, dtype=dtype, device=device)
    kind = prepare(op, a, b).problem.out_dtype
    c = random(2, 37, 21, dtype=kind, device=device)
    bias = random(42, dtype=kind, device=device)[::2] if has_bias else None
    for addend in (transposed(c), c[:1, :, :1], c[0, 0, 0]) if reads_c else (None,):
        run_checked(library, op, design, a, b, c=addend, bias=bias, **options)


@takes_the_kind
@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize(
    "dtype, kwargs",
    [(torch.int8, {"precision": "int8"}), (torch.uint8, {"precision": "uint8"}), (torch.uint8, {"precision": "int4"})],
    ids=str,
)
def test_matmul_epilogues_of_integers(library, op, design, device, dtype, kwargs):
    available_on(library, device)
    a, b = random(37, 33, dtype=dtype, device=device), random(33, 21, dtype=dtype, device=device)
    c, bias = (random(*shape, dtype=torch.int32, device=device) // 1000 for shape in ((37, 21), (21,)))
    options = {"alpha": 3, "beta": -2, "bias": bias, "activation": "relu"}
    run_checked(library, op, design, a, b, c=c, **kwargs, **options)


@pytest.mark.parametrize("library, op, design", designs("matmul"))
def test_matmul_never_reads_c_when_beta_is_zero_nor_a_and_b_when_alpha_is(library, op, design, device):
    available_on(library, device)
    dtype, options = taken(library, op, design)
    a, b = random(20, 30, dtype=dtype, device=device), random(30, 10, dtype=dtype, device=device)
    nan = torch.full((20, 10), torch.nan, dtype=dtype, device=device)
    result, _ = run_checked(library, op, design, a, b, c=nan, beta=0.0, **options)
    assert torch.isfinite(result).all()
    a.fill_(torch.nan)
    c = random(10, dtype=dtype, device=device)
    run_where_taken(library, op, design, a, b, c=c, alpha=0.0, beta=1.0, **options)


@pytest.mark.parametrize("layout", (torch.clone, transposed))
@pytest.mark.parametrize("library, op, design", designs("gemm", "matmul"))
def test_memory_after_aligned_operands_adds_nothing(library, op, design, layout, device):
    """Rows of whole vectors that end inside a slice, with NaN in the rows and columns after them."""
    available_on(library, device)
    dtype, options = taken(library, op, design)

    def inside(rows, cols):
        buffer = layout(torch.full((rows + 16, cols + 16), sentinel(dtype), dtype=dtype, device=device))
        buffer[:rows, :cols] = random(rows, cols, dtype=dtype)
        return buffer[:rows, :cols]

    run_checked(library, op, design, inside(48, 48), inside(48, 80), **options)


@long(lambda op: op == "matmul")
@pytest.mark.parametrize("library, op, design", designs())
def test_every_config_computes_the_same_problem(library, op, design, device, everything):
    """The GPU's configs too, on a size that is no multiple of a tile; `make test` has the first and the last."""
    available_on(library, device)
    dtype, options = taken(library, op, design)
    cols = 580 if design == "stream_k" else 131  # 580: 5 tiles, so that some block ends one and begins another
    groups, channels = 2 if dtype == torch.float32 else 1, 2 if design == "depthwise" else 4
    image = ((1, 4, 5, 37), (34, 2, 2, 3), (34,))
    image, kept = suited(library, op, design, image, groups=2, padding=1) if op == "conv2d" else (image, {})
    args, kwargs = {
        "gemm": ((random(70, 37), random(37, cols), random(70, cols)), {"beta": 0.5}),
        "gemv": ((random(37, 1100), random(1100), random(37)), {"beta": 0.5}),
        "conv2d": (tuple(random(*shape, dtype=dtype) for shape in image), kept),
        "conv2d_input": (
            ((1, 4, 9, 37), random(34, 2, 2, 3), random(1, 34, 5, 37)),
            {"groups": 2, "padding": 1, "stride": (2, 1)},
        ),
        "conv2d_weight": (
            (random(1, channels, 5, 37, dtype=dtype), (34, channels // groups, 2, 3), random(1, 34, 6, 39, dtype=dtype)),
            {"groups": groups, "padding": (1, 2)},
        ),
        "conv2d_bias": ((random(3, 37, 5, 13),), {}),
        # 150: enough for two parts of K to have slices, and not the same number of them
        "matmul": ((random(70, 150, dtype=dtype), random(150, 131, dtype=dtype)), options),
    }[op]
    args = [t.to(device) if isinstance(t, torch.Tensor) else t for t in args]
    call = prepare(op, *args, **kwargs)
    chosen = {d.name: d for d in library.designs(op)}[design]
    configs = list(chosen.configs(call.problem, library.target(call.result.device)))
    for i in range(len(configs)) if everything else sorted({0, len(configs) - 1}):
        run_checked(library, op, design, *args, config=configs[i], **kwargs)


@pytest.mark.parametrize("library, op, design", designs())
def test_small_integers_are_exact(library, op, design, device):
    available_on(library, device)
    dtype, options = taken(library, op, design)
    channels = 1 if design == "depthwise" else 3
    shapes = {
        "gemm": ((67, 70), (70, 35)),
        "gemv": ((67, 130), (130,)),
        "conv2d": ((2, 3, 10, 11), (5, 3, 3, 3)),
        "conv2d_input": (Size((2, 3, 10, 11)), (5, 3, 3, 2), (2, 5, 8, 10)),
        "conv2d_weight": ((2, channels, 10, 11), Size((5, channels, 3, 2)), (2, 5, 8, 10)),
        "conv2d_bias": ((2, 5, 8, 10),),
        "matmul": ((67, 70), (70, 35)),
    }[op]
    shapes, _ = suited(library, op, design, shapes)
    operands = built(shapes, functools.partial(small_integers, dtype=dtype, device=device))
    call = prepare(op, *operands, **options)
    out, *_ = poisoned(call.result.shape, dtype, device)
    config = {"OUTPUTS": 2} if design == "winograd" else None  # F(4 x 4, 3 x 3) divides by 225
    library.run(prepare(op, *operands, out=out, **options), design, config)
    from tritonkernels.numerics import reference

    assert torch.equal(out.double(), reference(op, *operands))
