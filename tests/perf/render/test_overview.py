"""The tables and drawings of matmul's ladder: figures are those of the records, and drawings keep the rules that they show."""

import itertools
import json

from perf.measure import records
from perf.offline import sass
from perf.render import chapter, hopper_drawings, overview

SIZE = "8192x8192x8192"


def cells(line):
    return line.strip("| ").split(" | ")


def test_the_overview_has_the_speeds_of_the_records_and_the_words_of_the_section(monkeypatch, tmp_path):
    page = tmp_path / "matmul.md"
    page.write_text("## tma\n\n**A ring.** More.\n\n### multicast\n\n**A pair** of blocks.\n")
    monkeypatch.setattr(overview, "CHAPTER", page)
    case = next(case for case in chapter.measured.suites(chapter.LADDER)["hopper"] if case.name.startswith(SIZE))
    of = {(r.implementation, r.design): f"{r.ratio_to_torch:.2f}" for r in case.designs}
    lines = overview.overview("tma", "multicast", SIZE).splitlines()
    assert cells(lines[-2]) == ["[tma](#tma)", "A ring", of["triton", "tma"], of["cuda", "tma"]]
    assert cells(lines[-1]) == ["[multicast](#multicast)", "A pair", "-", of["cuda", "multicast"]]


def test_the_code_is_that_of_the_records():
    rows = {
        (r["implementation"], r["design"]): r for r in records.read_rows(overview.FOLDER / "code.json") if r["op"] == "matmul"
    }
    tma, multicast = (cells(line) for line in overview.code("tma", "multicast").splitlines()[2:])
    row = rows["triton", "tma"]
    products, waits = (sum(n for name, n in row["hot_loop"].items() if word in name) for word in ("HGMMA", "DEPBAR"))
    assert tma[1] == str(row["registers"]) and tma[3].startswith(f"{products} HGMMA") and int(tma[4]) > waits > 0
    assert multicast[1:6] == ["-"] * 5 and multicast[6] == str(rows["cuda", "multicast"]["registers"])
    assert not sass.count({"LDGDEPBAR": 1, "UBAR": 1}, overview.WAITS)


def test_what_l2_and_dram_send_is_that_of_the_records():
    of = {row["design"]: row for row in json.loads((overview.FOLDER / "counters.json").read_text())["records"]}
    rows = {name: numbers for name, *numbers in map(cells, overview.counted("h200").splitlines()[4:])}
    assert rows.keys() == {f"`{name}`" if name else "cuBLAS" for name in of}
    for name, row in of.items():
        sent = rows[f"`{name}`" if name else "cuBLAS"]
        assert sent == [f"{row['l2_read_bytes'] / 1e6:.0f}", f"{row['dram_read_bytes'] / 1e6:.0f}"]


def test_a_rung_of_hopper_is_compared_with_the_last_one_that_the_package_has():
    case = next(case for case in chapter.measured.suites(chapter.LADDER)["hopper"] if case.name.startswith(SIZE))
    triton, cuda = ({r.design: f"{r.tflops:.1f}" for r in case.of(package)} for package in ("triton", "cuda"))
    text = chapter.rung("hopper", "tile_loop", "multicast", "in_turn", SIZE)
    assert (
        f"| Triton | {triton['tile_loop']} to {triton['in_turn']} (" in text
        and "[the difference to `multicast`](matmul/" in text
    )
    assert f"| CUDA | {cuda['multicast']} to {cuda['in_turn']} (" in text
    assert "| Triton | - |" in chapter.rung("hopper", "tile_loop", "multicast", SIZE)
    assert ("multicast", "in_turn") in list(chapter.rungs("matmul"))


def test_a_swizzled_chunk_is_in_another_place_of_every_row():
    in_order, swizzled = hopper_drawings.wgmma()
    places = [{(x, y) for x, y, *_, label in panel["boxes"] if label == 0} for panel in (in_order, swizzled)]
    assert [len({x for x, _ in own}) for own in places] == [1, 8] and all(len({y for _, y in own}) == 8 for own in places)


def test_no_stage_is_loaded_before_it_has_been_multiplied():
    _, ring = hopper_drawings.tma()
    for stage in range(3):
        own = sorted((x, x + width) for x, y, width, *_ in ring["boxes"] if y == stage)
        assert len(own) > 1 and all(end <= start for (_, end), (start, _) in itertools.pairwise(own))


def test_one_consumer_multiplies_at_a_time_in_turn():
    together, turns = (
        sorted((x, x + width) for x, _, width, *_, label in panel["boxes"] if label != "write")
        for panel in hopper_drawings.in_turn()
    )
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(turns)) and together[0] == together[1]


def test_the_waves_of_tiles_are_those_that_the_lesson_counts():
    titles = [panel["title"].partition(": ")[2] for panel in hopper_drawings.tile_loop()]
    assert titles == ["64 x 3 tiles", "8 x 17 tiles"]
