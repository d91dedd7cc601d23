"""The GEMM chapter: each rung with what it gains, and no design left out."""

from perf.render import chapter
from tritonkernels.launch import LIBRARY


def test_every_design_of_gemm_has_a_section():
    assert [name for _, name in chapter.rungs()] == [rung.name for rung in LIBRARY.operation("gemm").own]


def test_a_rung_says_what_it_gains_and_where_its_files_are():
    case = next(case for case in chapter.measured.suites(chapter.LADDER)["ladder"] if case.name == "1024x1024x1024")
    before, after = ({r.design: r.tflops for r in case.of("cuda")}[name] for name in ("naive", "tiled"))
    table = chapter.rung("naive", "tiled", "1024x1024x1024")
    assert (
        f"| CUDA | {before:.1f} to {after:.1f} ({after / before - 1:+.0%}) |" in table
        and f"| cuBLAS | {case.vendor.tflops:.1f} |" in table
    )
    assert "(../cuda_reference/gemm/tiled.cuh)" in table and "(gemm/tiled.md)" in table
    assert " to " not in chapter.rung("naive", "1024x1024x1024").splitlines()[2]


def test_markers_name_rungs_and_cases():
    assert list(chapter.rungs())[:2] == [(None, "naive"), ("naive", "tiled")]


def test_parts_of_other_kinds_stay_as_they_are():
    text = "<!-- a: x y -->\nold\n<!-- /a -->\n<!-- b: z -->\nkept\n<!-- /b -->"
    filled = chapter.filled(text, {"a": lambda x, y: f"{y} {x}"})
    assert filled == text.replace("old", "y x")


def test_the_diff_page_shows_what_changes():
    page = chapter.diff("vectorized", "conflict_free")
    assert page.startswith("# From vectorized to conflict_free\n") and "../gemm.md#conflict_free" in page
    changed = [line for line in page.splitlines() if line.startswith(("+", "-"))]
    assert any("BM + 4" in line for line in changed)
