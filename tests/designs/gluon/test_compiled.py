"""The machine code of the layouts: widths, bank conflicts, and the share of FFMA in the slice loop.

For `make test-all`: in `make test` tests/designs/test_compile.py compiles each of these designs once.
"""

import json

import pytest

from perf.offline.sass import LOCAL
from tests.compiler import printed
from tests.designs.gluon.operands import DESIGNS, OPERANDS
from tests.harness import thorough

pytestmark = thorough


@pytest.fixture(scope="module")
def facts():
    output = printed("from tests.designs.gluon.compiled import main; main()")
    return {(row["design"], row["operands"]): row for row in json.loads(output)}


LESSONS = tuple(design for design in DESIGNS if design != "async_copy")


def test_nine_of_ten_instructions_of_the_best_design_multiply(facts):
    assert facts["async_copy", "rows"]["ffma_share"] >= 0.9
    assert facts["async_copy", "columns"]["ffma_share"] >= 0.9
    assert all(row["ffma_share"] >= 0.82 for row in facts.values())


@pytest.mark.parametrize("design", DESIGNS)
def test_no_spills(facts, design):
    for operands in OPERANDS:
        row = facts[design, operands]
        assert not any(opcode.startswith(LOCAL) for opcode in row["loop"]), operands
        assert row["stack"] == 0 or operands not in ("rows", "columns"), operands


@pytest.mark.parametrize("design", LESSONS[1:])
@pytest.mark.parametrize("operands", ["rows", "columns"])
def test_two_blocks_of_a_lesson_fit_on_an_sm(facts, design, operands):
    """With quads; single floats have more addresses."""
    assert facts[design, operands]["registers"] <= 128


def slices(facts, design, operands):
    """How many slices of 8 k the loop of a lesson has."""
    return facts[design, operands]["loop"]["FFMA"] / (8 * 64)


@pytest.mark.parametrize("design", LESSONS)
@pytest.mark.parametrize("operands", OPERANDS)
def test_barriers_of_a_slice(facts, design, operands):
    """The barriers that are written: Triton adds none of its own, and one is enough for two buffers."""
    barriers = sum(n for opcode, n in facts[design, operands]["loop"].items() if opcode.startswith("BAR."))
    assert barriers / slices(facts, design, operands) == (1 if design == "double_buffered" else 2)


@pytest.mark.parametrize("design", DESIGNS)
def test_shared_memory_is_read_128_bits_at_a_time(facts, design):
    """Per k a thread tile of 8 x 8 needs 4 quads, one of 16 x 8 needs 6. Every quad is read once."""
    for operands in OPERANDS:
        quads = 96 if design == "async_copy" else 8 * 4 * slices(facts, design, operands)
        assert facts[design, operands]["loop"]["LDS.128"] == quads


@pytest.mark.parametrize("operands", ["rows", "columns"])
def test_vectorized_reads_global_memory_in_quads(facts, operands):
    assert (facts["warp_tiled", operands]["loop"]["LDG.E"], facts["vectorized", operands]["loop"]["LDG.E.128"]) == (8, 2)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("operands", [name for name in OPERANDS if name not in ("rows", "columns")])
def test_accesses_are_narrow_where_alignment_is_unknown(facts, design, operands):
    """Except in async_copy, which packs such operands, and has only wide accesses."""
    copies = {o for o in facts[design, operands]["loop"] if o.startswith(("LDG.", "LDGSTS"))}
    wide = {o for o in copies if o.endswith(("64", "128"))}
    assert copies and wide == (copies if design == "async_copy" else set())


@pytest.mark.parametrize("operands", OPERANDS)
def test_bank_conflicts_as_triton_counts_them(facts, operands):
    """As tests/designs/gluon/test_banks.py counts them, for the other lessons too."""
    a_along_k, b_along_k = operands in ("rows", "odd"), operands in ("columns", "odd columns")
    expected = ["store A"] * a_along_k + ["store B"] * b_along_k + ["load B"]
    for design in ("warp_tiled", "vectorized"):
        assert facts[design, operands]["conflicts"] == expected
    assert facts["async_copy", operands]["conflicts"] == []


def test_only_async_copy_copies_slices_without_registers(facts):
    for (design, _), row in facts.items():
        copies = any(opcode.startswith("LDGSTS") for opcode in row["loop"])
        loads = any(opcode.startswith("LDG.") for opcode in row["loop"])
        assert (copies, loads) == ((True, False) if design == "async_copy" else (False, True))
