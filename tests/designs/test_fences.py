"""Memory order in machine code: each required fence is between the right accesses, in PTX and in SASS.

A run in the interpreter or on a GPU seldom fails without a fence. The emulation reports the missing fences that it can see.
"""

import json
import re
from pathlib import Path

import pytest

import cuda_reference
from perf.offline import sass
from tests import harness, nvcc
from tests.compiler import printed
from tests.harness import thorough

CUDA = Path(cuda_reference.__file__).parent

# A block's stores come before its arrival, and the loads of the last to arrive after it.
ARRIVAL = {
    "ptx": ("bar.sync", "atom.acq_rel.add", "atom.global.exch", "bar.sync"),
    "sass": ("BAR.SYNC", "MEMBAR.GPU", "ATOMG.ADD", "CCTL.IVALL", "ATOMG.EXCH", "BAR.SYNC"),
}
# wgmma reads shared memory that cp.async and stores have written; the copy engine, memory that stores have written.
SLICES = {
    "ptx": ("cp.async.wait_group", "fence.proxy.async", "bar.sync", "wgmma.fence", "wgmma.mma_async"),
    "sass": ("FENCE.VIEW.ASYNC", "BAR.SYNC", "HGMMA"),
}
BOXES = {
    "ptx": ("fence.proxy.async", "bar.sync", "cp.async.bulk.tensor.3d.global"),
    "sass": ("FENCE.VIEW.ASYNC", "BAR.SYNC", "UTMASTG"),
}
# A block's sums, before others read them.
EXCHANGE = {
    "ptx": ("wgmma.mma_async", "barrier.cluster.arrive.release", "barrier.cluster.wait.acquire", "mapa"),
    "sass": ("HGMMA", "MEMBAR.GPU", "UCGABAR_ARV", "UCGABAR_WAIT", "CCTL.IVALL"),
}
# mbarriers must be visible to the copy engine before the first copy that uses them, and to their block, or cluster.
BARRIERS = {
    "ptx": ("mbarrier.init", "fence.mbarrier_init", "fence.proxy.async", "bar.sync"),
    "sass": ("FENCE.VIEW.ASYNC", "BAR.SYNC"),
}
BARRIERS_OF_A_CLUSTER = {
    "ptx": (*BARRIERS["ptx"][:-1], "barrier.cluster.arrive", "barrier.cluster.wait"),
    "sass": ("FENCE.VIEW.ASYNC", "UCGABAR_ARV", "UCGABAR_WAIT", "CCTL.IVALL"),
}
# wgmma reads the planes of B that other warps have stored.
STORED_PLANES = {
    "ptx": ("bar.sync", "fence.proxy.async", "wgmma.fence", "wgmma.mma_async"),
    "sass": ("BAR.SYNC", "FENCE.VIEW.ASYNC", "UTMALDG"),
}
REQUIRED = {  # (header, kernel) -> (a part of its mangled name, the fences in its code)
    ("gemv/split_n.cuh", "gemv::split_n<float, float, 4, 4, false>"): ("split_n", [ARRIVAL]),
    ("gemv/transposed.cuh", "gemv::transposed<float, float, 1, 32, 4, 4, false>"): ("transposed", [ARRIVAL]),
    ("gemm/split_k.cuh", "gemm::split_k<64, 64, 16, 8, 4, true, false>"): ("4gemm7split_k", [ARRIVAL]),
    ("gemm/stream_k.cuh", "gemm::stream_k<64, 64, 16, 4, 4, true, false>"): ("4gemm8stream_k", [ARRIVAL]),
    **{
        ("conv2d/implicit_gemm.cuh", f"conv2d::implicit_gemm<__half, conv2d::Math::{of}>"): (f"implicit_gemm.*{name}E", fences)
        for of, name, fences in (
            ("MMA, 64, 64, 64, 32, 32, 4, true", "MathE1.*Lb1", [ARRIVAL]),
            ("WGMMA, 64, 64, 64, 16, 64, 4, true", "MathE2.*Lb1", [SLICES, ARRIVAL]),
            ("WGMMA, 64, 64, 64, 16, 64, 4, false", "MathE2.*Lb0", [SLICES, ARRIVAL]),
        )
    },
    **{
        ("matmul/split_k.cuh", f"matmul::split_k<__half, __half, float, {of}>"): (f"split_kI.*{name}E", fences)
        for of, name, fences in (
            ("false, 64, 64, 64, 32, 32, 4, true, false, 16, 16, true, false", "fLb0", [ARRIVAL]),
            ("true, 64, 128, 64, 16, 128, 4, true, true, 16, 16, true, false", "fLb1", [SLICES, ARRIVAL]),
        )
    },
    ("matmul/planes.cuh", "matmul::planes<__half, 1, 64, 64, 32, 32, 32, 3>"): ("6matmul6planes", [ARRIVAL]),
    ("matmul/fused_planes.cuh", "matmul::fused_planes<float, 1, 64, 64, 32, 32, 32, 4, true, false, 16, 16>"): (
        "6matmul12fused_planes",
        [ARRIVAL],
    ),
    ("matmul/wgmma_planes.cuh", "matmul::wgmma_planes<128, 64, 6, true, false>"): (
        "6matmul12wgmma_planes",
        [BARRIERS, STORED_PLANES, ARRIVAL],
    ),
    ("matmul/cuda_cores.cuh", "matmul::cuda_cores<64, 64, 32, 4, 4, 3, true, true, false, true, false, true, true>"): (
        "6matmul10cuda_cores",
        [ARRIVAL],
    ),
    (
        "matmul/cluster_split_k.cuh",
        "matmul::cluster_split_k<__half, __half, float, 64, 64, 1, 8, 4, true, true, false, matmul::NO_SCALES, true>",
    ): ("cluster_split_k", [BARRIERS, EXCHANGE]),
    ("conv2d/warp_specialized.cuh", "conv2d::warp_specialized<__half, 64, 128, 2, 8, 1, true, true, false>"): (
        "6conv2d16warp_specialized",
        [BARRIERS, ARRIVAL],
    ),
    ("conv2d_weight/parts/cuda_cores.cuh", "conv2d_weight::cuda_cores<64, 64, 32, 8, 8, 2>"): (
        "conv2d_weight10cuda_cores",
        [ARRIVAL],
    ),
    ("conv2d_weight/warp_specialized.cuh", "conv2d_weight::warp_specialized<__half, 64, 128, 8>"): (
        "13conv2d_weight16warp_specialized",
        [BARRIERS, ARRIVAL],
    ),
    ("conv2d_weight/parts/tensor_cores.cuh", "conv2d_weight::tensor_cores<__half, true, 64, 64, 64, 16, 64, 4>"): (
        "tensor_cores",
        [SLICES],
    ),
    **{
        (
            "matmul/persistent.cuh",
            f"matmul::persistent<{of}, false, matmul::NO_SCALES, true, true>",
        ): (
            f"persistentI{name}",
            [*fences, BOXES],
        )
        for of, name, fences in (
            ("__half, __half, float, 64, 64, 1, 4, 1, 1, false, false, true, true", "6__half.*Li1ELi1ELb0", (BARRIERS,)),
            ("__half, __half, float, 96, 64, 1, 8, 1, 1, true, false, true, true", "6__half.*Li1ELi1ELb1", (BARRIERS,)),
            (
                "__half, __half, float, 128, 128, 2, 4, 2, 1, false, false, true, true",
                "6__half.*Li2ELi1ELb",
                (BARRIERS_OF_A_CLUSTER,),
            ),
            ("float, float, float, 64, 64, 1, 4, 1, 1, true, false, true, false", "f", (BARRIERS,)),
        )
    },
}
# Of Hopper's lessons, which stand alone: names of one are names of the next.
LESSONS = {
    f"matmul/{name}.cuh": (f"matmul::{name}<__half, __half, {numbers}>", fences)
    for name, numbers, fences in (
        ("wgmma", "128, 128", [SLICES]),
        ("tma", "128, 128, 3", [BARRIERS]),
        ("specialized", "128, 256, 4", [BARRIERS]),
        ("tile_loop", "128, 256, 4", [BARRIERS]),
        ("multicast", "128, 256, 4", [BARRIERS_OF_A_CLUSTER]),
        ("in_turn", "128, 128, 6", [BARRIERS_OF_A_CLUSTER]),
    )
}
SOME = [  # kernels that have each of these, for `make test`
    ("gemv/split_n.cuh", "gemv::split_n<float, float, 4, 4, false>"),
    *(kernel for kernel in REQUIRED if re.fullmatch("matmul/(split_k|wgmma_planes|cluster_split_k).cuh", kernel[0])),
    *(kernel for kernel in REQUIRED if BARRIERS_OF_A_CLUSTER in REQUIRED[kernel][1]),
]
WORDS = {
    "ptx": r"bar\.sync|atom\.global\.gpu\.\w+\.\w+\.\w+|atom\.global\.\w+|fence\.proxy\.async|fence\.mbarrier_init"
    r"|mbarrier\.init|wgmma\.fence"
    r"|wgmma\.mma_async|cp\.async\.wait_group|cp\.async\.bulk\.tensor\.3d\.\w+|barrier\.cluster\.\w+(?:\.release|\.acquire)?|mapa",
    "sass": r"BAR\.SYNC|MEMBAR\.\w+\.GPU|CCTL\.IVALL|ATOMG(?:\.E)?\.\w+|FENCE\.VIEW\.ASYNC|HGMMA|UTMASTG|UTMALDG"
    r"|UCGABAR_\w+",
}


def order(words, code):
    """The short names of the words that the code has, in its order; a repeated one counts once."""
    found = [short(word) for word in re.findall(words, code)]
    return [word for i, word in enumerate(found) if i == 0 or word != found[i - 1]]


def short(word):
    """A word without details: "MEMBAR.SC.GPU" is "MEMBAR.GPU", "atom.global.gpu.acq_rel.add.u32" "atom.acq_rel.add"."""
    word = re.sub(r"^MEMBAR\.\w+", "MEMBAR", word)
    word = re.sub(r"^ATOMG\.E", "ATOMG", word)
    return re.sub(r"^atom\.global\.gpu\.(\w+\.\w+)\.\w+$", r"atom.\1", word)


def check(fences, words, codes):
    """Asserts that each of the fences is in the PTX and in the SASS."""
    for kind, code in codes.items():
        found = order(words[kind], code)
        for fence in fences:
            wanted = fence[kind]
            assert any(tuple(found[i : i + len(wanted)]) == wanted for i in range(len(found))), (kind, wanted, found)


@pytest.fixture(scope="module")
def compiled(pytestconfig):
    """[(mangled name, {"ptx": code, "sass": code})] of these kernels, from one translation unit."""
    asked = REQUIRED if pytestconfig.getoption("all") else SOME
    unit = nvcc.compiled("90a", *zip(*asked))
    ptx = dict(kernel.split("(", 1) for kernel in unit.ptx.split(".entry ")[1:])
    machine_code = sass.read(unit.cubin)
    assert ptx.keys() == machine_code.keys() and len(ptx) == len(asked)
    texts = {name: "\n".join(text for _, text in code.instructions) for name, code in machine_code.items()}
    return [(name, {"ptx": ptx[name], "sass": texts[name]}) for name in ptx]


@nvcc.needed
@harness.short(lambda required: required in SOME)
@pytest.mark.parametrize("required", REQUIRED, ids=lambda required: required[1])
def test_fences_of_cuda_kernels(compiled, required):
    pattern, fences = REQUIRED[required]
    (codes,) = (codes for name, codes in compiled if re.search(pattern, name))
    check(fences, WORDS, codes)


@nvcc.needed
@thorough
@pytest.mark.parametrize("header", LESSONS)
def test_fences_of_lessons(header):
    expression, fences = LESSONS[header]
    unit = nvcc.compiled("90a", [header], [expression])
    (code,) = sass.read(unit.cubin).values()
    check(fences, WORDS, {"ptx": unit.ptx, "sass": "\n".join(text for _, text in code.instructions)})


def test_every_kernel_that_needs_a_fence_is_in_the_table():
    wants = re.compile(
        r"\b(?:last_to_arrive|add_(?:splits|parts)<(?:Own::)?THREADS[^>]*>|walk_behind|cluster_exchange|tma_store|tma_store_fence|mbarrier_init)\("
        r"|SharedTiles<"
    )
    files = {path for path in CUDA.glob("**/*.cuh") if wants.search(path.read_text())}
    parts = ("slices", "products", "sums_of_others", "out_boxes", "swapped", "block_memory", "boxed_result")
    shared = {CUDA / f"common/{name}.cuh" for name in ("add_splits", "last_to_arrive", "mbarrier", "tma")}
    shared |= {CUDA / f"matmul/parts/{name}.cuh" for name in parts}
    assert files - shared == {CUDA / header for header in (*LESSONS, *(header for header, _ in REQUIRED))}


# Prints [design, PTX, SASS] of a kernel of each of an operation's designs that counts arrivals.
COMPILE = """
import itertools, json, sys
from perf.offline import sass
from perf.offline import compile_launch, representative_calls, unusual_calls
from tests.harness import names
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

target, (op,) = Target.named("sm_90"), sys.argv[1:]
for design in (d for d in LIBRARY.designs(op) if d.name in names(LIBRARY, op)):
    launches = (
        launch
        for call in (*representative_calls(op), *unusual_calls(op))
        if design.refuses(call.problem, target) is None
        for config in design.configs(call.problem, target)
        for launch in design.launches(call.problem, config, *call.parts[0])
        if any(name.startswith("counters") and value is not None for name, value in launch.values.items())
    )
    for launch in itertools.islice(launches, 1):
        compiled = compile_launch(launch, target).asm
        (code,) = sass.read(compiled["cubin"]).values()
        texts = [text for _, text in code.instructions]
        print(json.dumps([design.name, compiled["ptx"], "\\n".join(texts)]), flush=True)
"""
ARRIVAL_IN_TRITON = {
    "ptx": ("st.global", "bar.sync", "atom.acq_rel.add", "bar.sync", "atom.relaxed.exch", "ld.global"),
    "sass": ("STG", "BAR.SYNC", "MEMBAR.GPU", "ATOMG.ADD", "BAR.SYNC"),
}
WORDS_OF_TRITON = {
    "ptx": r"bar\.sync|st\.global|ld\.global|(?<=\s)atom\.[\w.]+",
    "sass": r"BAR\.SYNC|STG|MEMBAR\.\w+\.GPU|ATOMG(?:\.E)?\.\w+",
}


COUNTING = {
    "gemm": {"split_k"},
    "gemv": {"split_n", "transposed"},
    "matmul": {"planes", "fused_planes", "split_k"},
    "conv2d": {"implicit_gemm"},
    "conv2d_weight": set(),
}


@harness.short(lambda op: op in ("gemm", "gemv"))
@pytest.mark.parametrize("op", COUNTING)
def test_arrivals_of_triton_kernels(op):
    """All threads of a program have written their parts before one arrives, with acquire and release."""
    codes = {design: {"ptx": ptx, "sass": code} for design, ptx, code in map(json.loads, printed(COMPILE, op).splitlines())}
    assert set(codes) == COUNTING[op]
    for kinds in codes.values():
        check([ARRIVAL_IN_TRITON], WORDS_OF_TRITON, kinds)
