"""Strides and sizes that are multiples of 2, 4 or 8, which Triton does not see itself: results, and loads of 16 bytes."""

import json

import pytest
import torch

from tests.compiler import printed
from tests.harness import DEVICES, available_on, prepare, random
from tritonkernels.language.tiles import multiple_of
from tritonkernels.launch import LIBRARY

DESIGNS = ("pipelined", "split_k", "persistent")

# Prints [design, precision, sizes, opcodes and their counts] of the kernels of designs for an H200.
COMPILE = """
import collections, json, sys, torch
from perf.offline import compile_launch, sass
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul import prepare
from tritonkernels.target import Target

target = Target.named("h200")
for name in sys.argv[1:]:
    (design,) = (d for d in LIBRARY.designs("matmul") if d.name == name)
    for precision, dtype, layout, sizes in (
        ("fp16", torch.float16, "row", (640, 432, 6384)), ("fp16", torch.float16, "row", (640, 424, 6392)),
        ("fp16", torch.float16, "col", (640, 424, 6392)), ("tf32", torch.float32, "col", (640, 424, 6388)),
    ):
        m, n, k = sizes
        a = torch.empty(m, k, dtype=dtype, device="meta")
        b = torch.empty(n, k, dtype=dtype, device="meta").t() if layout == "col" else a.new_empty(k, n)
        call = prepare(a, b, precision=precision)
        *_, launch = (x for x in design.launches(call.problem, next(iter(design.configs(call.problem, target))), *call.parts[0])
                      if {"a", "b"} <= x.values.keys())
        (code,) = sass.read(compile_launch(launch, target).asm["cubin"]).values()
        opcodes = collections.Counter(text.split()[0] for _, text in code.instructions)
        print(json.dumps([name, precision, sizes, opcodes]))
"""


def test_which_multiples():
    """Not of what Triton sees: 0, 1 and multiples of 16."""
    assert [multiple_of(x) for x in (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 6392, 48)] == [1, 1, 2, 1, 4, 2, 8, 4, 1, 8, 8, 1]


def of_pitch(matrix, pitch):
    """The same values in rows `pitch` elements apart, in columns if the matrix lies along its columns."""
    turned = matrix.stride(-1) != 1
    rows = matrix.mT if turned else matrix
    room = rows.new_full((*rows.shape[:-1], pitch), torch.nan)
    view = room[..., : rows.shape[-1]].copy_(rows)
    return view.mT if turned else view


@pytest.mark.parametrize(
    "sizes, pitch", [((24, 40, 72), 0), ((20, 36, 68), 4), ((18, 34, 66), 2), ((24, 40, 72), 1), ((17, 33, 65), 7)]
)
@pytest.mark.parametrize("layout", ("NN", "NT", "TN", "TT"))
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("device", DEVICES)
def test_any_multiple(device, design, layout, sizes, pitch):
    """Sizes and strides that are multiples of less or more, each operand in its own way; in batches."""
    available_on(LIBRARY, device)
    m, n, k = sizes
    a, b = (random(2, *shape, dtype=torch.float16, device=device) for shape in ((m, k), (k, n)))
    a, b = (x.mT.contiguous().mT if turned == "T" else x for x, turned in zip((a, b), layout, strict=True))
    c, out = (torch.zeros(2, m, n, dtype=torch.float16, device=device) for _ in range(2))
    c.copy_(random(2, m, n, dtype=torch.float16, device=device))
    a, b, c, out = of_pitch(a, 128 + pitch), of_pitch(b, 128 + pitch), of_pitch(c, 56), of_pitch(out, 64 + pitch)
    outside = out.as_strided((2, m, 8), out.stride(), out.storage_offset() + n).fill_(77)
    call = prepare("matmul", a, b, c=c, beta=0.5, out=out.fill_(torch.nan))
    LIBRARY.run(call, design)
    verdict = LIBRARY.judge(call, design, None, a, b, c=c, beta=0.5)
    assert verdict.ok and (outside == 77).all(), verdict


def test_rows_of_whole_chunks_are_loaded_and_stored_in_chunks(everything):
    """As those of multiples of 16 are: not an element at a time, without cp.async. `make test` has one design."""
    designs = DESIGNS[:3] if everything else DESIGNS[:1]
    found = [json.loads(line) for line in printed(COMPILE, *designs).splitlines()]
    assert len(found) == 4 * len(designs)
    for design in designs:
        whole, *others = (opcodes for name, _, _, opcodes in found if name == design)
        assert whole["LDGSTS.E.BYPASS.128"] >= 24
        for opcodes in others:
            assert opcodes["LDGSTS.E.BYPASS.128"] == whole["LDGSTS.E.BYPASS.128"]
            narrow = {opcode for opcode in opcodes if opcode.startswith(("LDG", "STG")) and "128" not in opcode}
            assert narrow <= {"LDGDEPBAR"}, (design, narrow)
