"""The chapter of convolutions: a section for each design, tables of records, drawings that keep their rules, its numbers."""

import re
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from perf.measure import class_table, measured, records
from perf.render import chapter, compiled, conv_drawings, conv_tables, conv_trace
from tests.harness import prepare
from tritonkernels.launch import LIBRARY
from tritonkernels.operations.conv2d_weight.pieces import cut

PAGE = chapter.DOCS / "conv2d.md"
LADDER = "1x6x768x512_by_6x6x6x6"


def cells(line):
    return line.strip("| ").split(" | ")


@pytest.fixture(scope="module")
def text():
    return " ".join(PAGE.read_text().split())


@pytest.fixture(scope="module")
def traced():
    """{design: the cells of its row in the table of accesses}"""
    (table,) = (match[0] for match in chapter.MARKED.finditer(PAGE.read_text()) if match[1] == "trace")
    return {name.strip("`"): row for name, *row in map(cells, table.splitlines()[3:]) if row}


@pytest.fixture(scope="module")
def loops():
    """{design: its row of machine code in CUDA}"""
    rows = records.read_rows(conv_tables.FOLDER / "code.json")
    return {row["design"]: row for row in rows if (row["op"], row["implementation"]) == ("conv2d", "cuda")}


def test_every_design_has_a_section():
    sections = set(re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE))
    assert sections == {rung.name for rung in LIBRARY.operation("conv2d").own}


def test_a_step_says_what_it_gains_in_one_case():
    (case,) = (case for case in measured.suites(chapter.LADDER)["image"] if case.name.replace(" ", "_") == LADDER)
    before, after = ({r.design: r.tflops for r in case.of("cuda")}[name] for name in ("direct", "prefetched"))
    step = chapter.step("image", "direct", "prefetched", LADDER)
    assert f"CUDA {before:.1f} to {after:.1f} ({after / before - 1:+.0%}), cuDNN {case.vendor.tflops:.1f}." in step
    assert "(../cuda_reference/conv2d/prefetched.cuh)" in step and "(conv2d/prefetched.md)" in step
    assert ("direct", "prefetched") in list(chapter.rungs("conv2d"))


def test_a_design_may_have_the_name_of_a_suite():
    assert chapter._names(("grouped", "depthwise", "grouped", "1x1")) == ("grouped", ["depthwise"], "grouped")


def test_loops_are_those_of_the_records(loops):
    row = loops["register_blocked"]
    found, hopper = map(cells, conv_tables.loops("register_blocked", "warp_specialized").splitlines()[-2:])
    assert found[6:9] == [str(row[name]) for name in ("registers", "blocks_per_sm", "hot_loop_instructions")]
    assert found[9] == f"{row['hot_loop']['FFMA'] / row['hot_loop_instructions']:.0%} FFMA"
    assert hopper[9:] == ["32 wgmma", "-"]


def test_layouts_have_the_fastest_design_of_each():
    cases = {case.name: case for case in measured.suites(conv_tables.FOLDER)["image"]}
    found = cells(conv_tables.layouts(LADDER).splitlines()[-1])
    best = [cases[f"1x6x768x512 by 6x6x6x6{end}"].best("cuda") for end in ("", " channels_last")]
    assert [found[3], found[6]] == [f"{1e3 * r.median_ms:.1f} `{r.design}`" for r in best]


def swept(us, size=32, dtype=torch.float16):
    problem = prepare("conv2d", torch.empty(8, 64, size, size, dtype=dtype), torch.empty(64, 64, 3, 3, dtype=dtype)).problem
    times = [(design, {}, slower * time, None) for design, time in us.items() for slower in (1, 3)]  # the fastest counts
    environment = {"date": "2026-01-02", **dict.fromkeys(("device", "torch", "triton", "cuda"), "x")}
    return SimpleNamespace(problem=problem, torch=("conv2d", 10.0), times={"cuda_reference": times}, environment=environment)


def test_both_products_are_compared_where_both_were_timed(monkeypatch):
    rows = [
        swept({"implicit_gemm": 20.0, "warp_specialized": 5.0}),
        swept({"implicit_gemm": 5.0, "warp_specialized": 20.0}),
        swept({"implicit_gemm": 10.0, "warp_specialized": 5.0}, size=256),
        swept({"implicit_gemm": 1.0}),
        swept({"implicit_gemm": 1.0, "warp_specialized": 1.0}, dtype=torch.float32),
    ]
    monkeypatch.setattr(conv_tables.measured, "swept", lambda folder, op: rows)
    monkeypatch.setattr(conv_tables.measured, "PACKAGES", {"cuda": "CUDA"})
    row = cells(conv_tables.hopper("conv2d").splitlines()[-1])
    assert row == ["`conv2d`", "CUDA", "1.00", "2.00", "1 of 1", "1.00", "1.00", "1 of 2"]


def test_classes_are_those_of_the_results():
    (result,) = (r for r in class_table.of_records(measured.drawn(conv_tables.FOLDER)) if r.class_.name == "conv few channels")
    row = cells(conv_tables.classes("conv_few_channels").splitlines()[-1])
    assert row[2:] == [f"{x:.2f}" for side in result.packages.values() for x in (side.mean, side.worst)]


def test_other_kernels_or_configs_make_the_counts_old(monkeypatch):
    assert compiled.is_current("trace", "conv2d", PAGE.read_text())
    monkeypatch.setattr(conv_trace, "configs", lambda: {"naive": {"THREADS": 64}})
    assert not compiled.is_current("trace", "conv2d", PAGE.read_text())
    monkeypatch.undo()
    monkeypatch.setattr(conv_trace.kernels, "digest", lambda files: "of another source")
    assert not compiled.is_current("trace", "conv2d", PAGE.read_text())


def boxes(made):
    return made["boxes"]


def test_a_tile_reads_its_inputs_as_often_as_the_page_says(text):
    (halo,) = conv_drawings.halo()
    read = [label for *_, label in boxes(halo)]
    assert f"{len(read)} inputs are then read {sum(read)} times" in text and sum(read) == 4 * 8 * 9
    down, across = conv_drawings.reads(4, 6), conv_drawings.reads(8, 6)
    assert f"{len(down) * len(across)} are read {sum(down) * sum(across)} times" in text


def test_a_run_loads_each_input_once(text):
    _, run = conv_drawings.runs()
    loaded = [label for *_, colour, label in boxes(run) if colour == conv_drawings.LOADED]
    assert sorted(loaded) == sorted({label for *_, label in boxes(run)})
    assert f"7 outputs need {len(loaded)} inputs instead of {len(boxes(run))}" in text


def test_the_matrix_has_what_the_filter_reads():
    _, matrix = conv_drawings.implicit_gemm(size=4, positions=16)
    image = torch.arange(1.0, 17).reshape(1, 1, 4, 4)
    patches = torch.nn.functional.unfold(image, 3, padding=1)[0].T
    for tap, position, *_, label in boxes(matrix):
        assert patches[position, tap] == (0 if label == "" else label + 1)


def test_a_box_reads_one_up_and_left_of_its_positions_or_zeros():
    positions, pixels = ({label: (x, y) for x, y, *_, label in boxes(p) if label != ""} for p in conv_drawings.boxes())
    assert pixels == {number: (x - 1, y - 1) for number, (x, y) in positions.items()} and len(pixels) == 16
    zeros = {label for *_, colour, label in boxes(conv_drawings.boxes()[1]) if colour == conv_drawings.ZERO}
    assert zeros == {number for number, (x, y) in pixels.items() if y == 0 or x % 7 == 0}


def test_phases_have_the_taps_that_reach_an_input(text):
    (drawing,) = conv_drawings.phases()
    ones = torch.ones(1, 1, 3, 3)
    reached = torch.nn.grad.conv2d_input((1, 1, 6, 6), ones, ones, stride=2, padding=1)[0, 0]
    found = {(y, x): label for x, y, *_, label in boxes(drawing)}
    inner = {at: label for at, label in found.items() if max(at) < 5}  # beyond the last output no tap of it is left
    assert {at: int(reached[at]) for at in inner} == inner
    taps = sorted(Counter((colour, label) for *_, colour, label in boxes(drawing)))
    one, two, three, four = sorted(label for _, label in taps)
    assert f"the four phases have {one}, {two}, {three} and {four} of the {one + two + three + four} taps" in text


def test_parts_of_a_weight_are_equal(text):
    whole, parts = conv_drawings.weight()
    slices = Counter()
    for _, y, width, *_ in boxes(parts):
        slices[y] += width
    assert set(slices.values()) == {8} and sum(slices.values()) == sum(
        w for _, _, w, *_, label in boxes(whole) if label != "idle"
    )
    found = cut(3 * 38, -(-4 * 114 * 114 // 64), 132)
    assert f"{found.tiles} tiles of {found.slices} slices" in text and f"leaves {132 - found.tiles} idle" in text
    assert f"the first {found.head} slices of a tile each, and the other {found.sharers} share the tails" in text


def test_the_prose_is_that_of_the_counts(text, traced):
    loads = {name: float(row[0]) for name, row in traced.items()}
    assert f"a load is used {loads['register_blocked'] / loads['naive']:.0f} times as often" in text
    assert f"at {loads['register_blocked']:.0f} multiply-adds a load" in text
    (case,) = (case for case in measured.suites(chapter.LADDER)["image"] if case.name == conv_trace.CASE)
    times = {r.design: r.median_ms for r in case.of("cuda")}
    factor = f"{times['naive'] / times['register_blocked']:.0f}"
    assert f"falls by a factor of {factor}:" in text and f"one kernel {factor} times as fast" in text
    (blocked,) = (r for r in case.of("cuda") if r.design == "register_blocked")
    assert f"at {blocked.tflops:.0f} of 67 TFLOP/s" in text
    others = loads.keys() - {"depthwise"}
    assert sorted(others, key=loads.get) == sorted(others, key=lambda name: -times[name])
    assert max(times["direct"], times["depthwise"]) < 1.1 * min(times["direct"], times["depthwise"])
    sectors = {name: [int(number) for number in row[3].split(" for ")] for name, row in traced.items()}  # channels_last
    naive, blocked = (sectors[name][0] / sectors[name][1] for name in ("naive", "register_blocked"))
    assert round(naive) == 6 and "fetches six times the fewest sectors" in text and f"once, {blocked:.1f} times" in text


def test_the_prose_is_that_of_the_machine_code(text, loops):
    for name, count in (("naive", "{} of the loop's {}"), ("direct", "{} of the loop's {}"), ("prefetched", "{} of {}")):
        row = loops[name]
        assert count.format(row["hot_loop"]["FFMA"], row["hot_loop_instructions"]) + " instructions" in text, name
    row = loops["register_blocked"]
    loads, math, all_ = sum(row["shared_loads"].values()), row["hot_loop"]["FFMA"], row["hot_loop_instructions"]
    assert f"{loads} loads and {math} multiply-adds, {math / all_:.0%}".replace("%", " %") in text
    assert f"the other {all_ - loads - math} instructions" in text and math == 4 * 8 * 6
    assert f"leave {loops['implicit_gemm']['ffma_share']:.0%} of CUDA's".replace("%", " %") in text
    row = loops["warp_specialized"]
    assert f"{row['hot_loop']['HGMMA.64x128x16.F32']} wgmma in {row['hot_loop_instructions']} instructions" in text


def test_the_ladders_case_is_limited_by_arithmetic(text):
    (case,) = (case for case in measured.suites(chapter.LADDER)["image"] if case.name == conv_trace.CASE)
    r = case.vendor
    flops, size = r.tflops * 1e9 * r.median_ms, 4 * 6 * (768 * 512 + 763 * 507)
    assert f"{flops / 1e9:.1f} GFLOP, which 67 TFLOP/s of CUDA cores need {flops / 67e6:.0f} us" in text
    assert f"{size / 1e6:.0f} MB, which memory moves in {size / 4.8e6:.1f} us" in text


def test_times_are_of_the_day_that_the_page_says(text):
    suites = measured.suites(chapter.LADDER)
    days = {case.vendor.environment["date"][:10] for name in ("image", "grouped", "resnet50") for case in suites[name]}
    assert len(days) == 1 and f"taken on {days.pop()} where" in text


def test_the_arithmetic_is_right(text):
    for channels, taps, name in (
        (1, 9, "3 x 3: {:.2f} FLOP"),
        (3, 9, "3 x 3**: {:.2f}"),
        (6, 36, "6 x 6**: {:.0f}"),
        (64, 9, "3 x 3**: {:.0f}"),
    ):
        assert name.format(2 * channels**2 * taps / (4 * 2 * channels)) in text
    run, taps, outputs = 7, 3, 4
    assert f"{run * taps * outputs} multiply-adds from {run + taps - 1} inputs and {taps} loads of taps" in text
    rows, cols, taps = 7, 4, 7
    products = f"{rows + taps - 1} rows of {cols + taps - 1} inputs and {rows * cols} gradients make {rows * cols * taps**2}"
    assert products in text and f"patches of {rows} x {cols} positions" in text
