"""gemm's configs with PACKED: operands that lie across rows are copied first, and the kernel reads them by rows. Products of
small integers are exact, so results must be equal."""

import itertools

import pytest
import torch

import cuda_reference.launch
import tritonkernels.launch
from tests.harness import DEVICES, assert_poisoned_outside, available_on, poisoned, prepare, small_integers
from tritonkernels.design import as_dict
from tritonkernels.target import Target

H200 = Target.named("h200")
LIBRARIES = {library.package: library for library in (cuda_reference.launch.LIBRARY, tritonkernels.launch.LIBRARY)}
COPIES = {"tritonkernels": "pack", "cuda_reference": "align"}
PACKING = [
    *itertools.product(("tritonkernels",), ("rasterized", "split_k", "stream_k")),
    *itertools.product(("cuda_reference",), ("rasterized", "async_copy", "split_k", "stream_k")),
]
LAYOUTS = {
    "row": lambda matrix: matrix.contiguous(),
    "col": lambda matrix: matrix.t().contiguous().t(),
    "every other": lambda matrix: torch.stack((matrix, matrix + 1), dim=2).flatten(1)[:, ::2],
    "odd pitch": lambda matrix: torch.nn.functional.pad(matrix, (1, 2))[:, 1:-2],
    "broadcast": lambda matrix: matrix[:, :1].expand_as(matrix),
}


def design_of(package, name):
    return next(design for design in LIBRARIES[package].designs("gemm") if design.name == name)


def packed_configs(package, name, problem, target=H200):
    return [config for config in design_of(package, name).configs(problem, target) if as_dict(config).get("PACKED")]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("a_layout", LAYOUTS)
@pytest.mark.parametrize("b_layout", LAYOUTS)
@pytest.mark.parametrize("package, name", PACKING)
def test_results_are_exact_in_every_layout(package, name, a_layout, b_layout, device):
    """Sizes of less than a tile, of its edge, and with tails along all of M, N and K."""
    library = LIBRARIES[package]
    available_on(library, device)
    for m, n, k in ((65, 67, 35), (5, 64, 8), (64, 3, 130)):
        a = LAYOUTS[a_layout](small_integers(m, k, device=device))
        b = LAYOUTS[b_layout](small_integers(k, n, device=device))
        c, (out, buffer, where) = small_integers(m, n, device=device), poisoned((m, n), torch.float32, device)
        call = prepare("gemm", a, b, c, out=out)
        target, design = library.target(out.device), design_of(package, name)
        assert design.refuses(call.problem, target) is None
        for config in packed_configs(package, name, call.problem, target)[-1:]:
            out.fill_(torch.nan)
            launches = list(design.launches(call.problem, config, *call.parts[0]))
            for launch in launches:
                launch.run()
            assert torch.equal(out, (a.double() @ b.double() + c).float())
            assert sum(launch.name == COPIES[package] for launch in launches) <= 2
            assert_poisoned_outside(buffer, where)


def operands(m, n, k, a_layout="row", b_layout="row"):
    a, b = torch.empty(m, k, device="meta"), torch.empty(k, n, device="meta")
    return (
        a if a_layout == "row" else torch.empty(k, m, device="meta").t(),
        b if b_layout == "row" else torch.empty(n, k, device="meta").t(),
    )


@pytest.mark.parametrize(
    "package, sizes, layouts, copied",
    [
        ("tritonkernels", (96, 64, 128), ("row", "row"), ""),
        ("tritonkernels", (96, 64, 128), ("col", "row"), ""),
        ("tritonkernels", (96, 64, 128), ("row", "col"), "b"),
        ("tritonkernels", (96, 66, 128), ("row", "row"), "b"),
        ("cuda_reference", (96, 64, 128), ("row", "row"), ""),
        ("cuda_reference", (96, 64, 128), ("row", "col"), "b"),
        ("cuda_reference", (96, 64, 128), ("col", "col"), "ab"),
        ("cuda_reference", (96, 64, 130), ("row", "row"), "a"),
    ],
)
def test_what_is_copied_is_in_the_work_and_in_the_configs(package, sizes, layouts, copied):
    """The kernel after it has the Work of operands that lie by rows."""
    problem = prepare("gemm", *operands(*sizes, *layouts)).problem
    by_rows = prepare("gemm", *operands(*sizes)).problem
    m, n, k = sizes
    expected = [{"a": 8 * m * k, "b": 8 * n * k}[name] for name in copied]  # each element read and written
    for name in (name for own, name in PACKING if own == package):
        design, found = design_of(package, name), packed_configs(package, name, problem)
        assert bool(found) == bool(copied)
        for config in found[:2]:
            own = next(c for c in design.configs(problem, H200) if as_dict(config) == as_dict(c) | {"PACKED": True})
            *moved, kernel = design.work(problem, config, H200)[: len(copied) + 1]
            assert kernel == design.work(by_rows, own, H200)[0]
            assert [work.dram for work in moved] == expected


@pytest.mark.parametrize("name", ("rasterized", "async_copy", "split_k", "stream_k"))
def test_cuda_reads_packed_operands_in_vectors(name):
    call = prepare("gemm", *operands(96, 96, 96, "col", "col"))
    for config in packed_configs("cuda_reference", name, call.problem)[:1]:
        *copies, kernel = design_of("cuda_reference", name).launches(call.problem, config, *call.parts[0])
        assert len(copies) == 2 and kernel.expression.endswith("true, false>")


@pytest.mark.parametrize("name", ("rasterized", "async_copy", "split_k", "stream_k"))
def test_cuda_copies_nothing_that_it_can_read_in_vectors(name):
    """Sizes say nothing of the pitch: 66 columns of rows 68 apart are quads."""
    a, b = torch.empty(64, 64, device="meta"), torch.empty(64, 68, device="meta")[:, :66]
    call = prepare("gemm", a, b)
    for config in packed_configs("cuda_reference", name, call.problem)[:1]:
        (launch,) = design_of("cuda_reference", name).launches(call.problem, config, *call.parts[0])
        assert launch.expression.endswith("true, true>"), "vectors are read, and rows of 66 are stored shifted"


def test_of_one_slice_no_tile_is_cut():
    """So that there is nothing to add up: of such, Triton 3.6 compiles no kernel that would."""
    design = design_of("tritonkernels", "stream_k")
    for k, kernels in ((8, ["stream"]), (32, ["stream"]), (33, ["stream", "add_parts"])):
        call = prepare("gemm", *operands(6272, 192, k))
        config = next(c for c in design.configs(call.problem, H200) if c.kwargs["BLOCK_M"] == c.kwargs["BLOCK_N"] == 64)
        assert [launch.name for launch in design.launches(call.problem, config, *call.parts[0])] == kernels
        assert len(design.work(call.problem, config, H200)) == len(kernels)
