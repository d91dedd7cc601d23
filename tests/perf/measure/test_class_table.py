"""Speed by class, on records made by hand: means, worst, counts, goals, who is named, and torch's wrong rows."""

import functools

import pytest
from stand_ins import record

from perf.measure import class_table

CLASS = "16-bit large"  # its goals are 1.00 and 0.90
row = functools.partial(record, suite="classes", op="matmul", config={"BM": 128, "BN": 64})


def case(name, torch_ms, seed=0, class_=CLASS, **ours):
    """Rows of a case, of torch's fastest way and of packages: {package: milliseconds}."""
    common = {"case": f"{class_}: {name}", "seed": seed}
    yield row(implementation="torch", design="matmul", median_ms=torch_ms, kernels=["nvjet_hsh_152x64_2x1", "splitk"], **common)
    yield row(implementation="torch", design="slower", median_ms=2 * torch_ms, **common)
    for package, ms in ours.items():
        yield row(implementation=package, design="tiled", median_ms=ms, ratio_to_torch=torch_ms / ms, **common)


def failed(name, package, message, **changes):
    fields = {
        "case": f"{CLASS}: {name}",
        "seed": 0,
        "ok": False,
        "median_ms": None,
        "message": message,
        "implementation": package,
    }
    return row(**fields | changes)


@pytest.fixture
def results():
    rows = [
        *case("1x1", 1.0, triton=0.5, cuda=1.0),  # 2, 1
        *case("2x2", 1.0, triton=1.25, cuda=1.0 / 0.94),  # 0.8, 0.94
        *case("3x3", 1.0, seed=1, triton=1.0 / 0.92, cuda=1.0),  # 0.92, 1
        failed("4x4", "triton", "refused: no fit"),
        *case("4x4", 1.0, cuda=1.0),  # 1
        *case("0x0", 1.0, class_="fp64", triton=1.0),
        row(suite="llm", case=f"{CLASS}: 9x9", implementation="triton"),
        row(case="no class: 9x9", implementation="triton"),
    ]
    return class_table.of_records(rows)


def test_figures_of_a_class(results):
    large, fp64 = results
    assert (large.class_.name, fp64.class_.name) == (CLASS, "fp64") and large.count == 4
    triton, cuda = large.packages["triton"], large.packages["cuda"]
    assert triton.ratios == pytest.approx([0.8, 0.92, 2.0]) and triton.worst == pytest.approx(0.8)
    assert triton.mean == pytest.approx((0.8 * 0.92 * 2.0) ** (1 / 3))
    assert (triton.below(0.95), triton.below(0.90), len(triton.others)) == (2, 1, 1)
    assert cuda.ratios == pytest.approx([0.94, 1, 1, 1]) and (cuda.below(0.95), cuda.below(0.90), cuda.others) == (1, 0, [])
    assert list(fp64.packages) == ["triton"]


def test_the_table_has_the_goals_beside_the_figures(results):
    text = class_table.markdown_table(results)
    head, _, large, fp64 = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines())
    assert head[:3] == ["class", "cases", "goal: mean, worst"] and head[3] == "Triton: mean" and head[8] == "CUDA: mean"
    assert large == [CLASS, "4", "1.00, 0.90", "1.14", "0.80!", "2", "1", "1", "0.98!", "0.94", "1", "0", "0"]
    assert fp64 == ["fp64", "1", "1.00, 0.92", "1.00", "1.00", "0", "0", "0", *["-"] * 5]


def test_a_figure_that_rounds_to_its_goal_does_not_miss_it_in_secret():
    (result,) = class_table.of_records(case("1x1", 0.999, triton=1.0))
    assert "1.00!" in class_table.markdown_table([result]), "0.999 is below 1"


def test_the_slowest_are_named_with_design_config_and_the_vendor_s_kernels(results):
    first, second, _ = class_table.worst(results[0], "triton")
    assert first == (
        "0.80  16-bit large: 2x2: 1250 us by tiled (BM 128, BN 64); torch 1000 us by matmul, nvjet_hsh_152x64_2x1 + splitk"
    )
    assert second.startswith("0.92  16-bit large: 3x3")
    assert len(class_table.worst(results[0], "cuda", 2)) == 2 and class_table.worst(results[1], "cuda") == []
    many = [r for n in range(7) for r in case(f"{n}", 1.0, triton=1.0 + n)]
    assert [line[:4] for line in class_table.worst(class_table.of_records(many)[0], "triton")] == [
        "0.14",
        "0.17",
        "0.20",
        "0.25",
        "0.33",
    ]


def test_what_has_no_time_is_named_with_its_reason(results):
    assert list(class_table.not_timed(results)) == ["matmul 16-bit large: 4x4, Triton warp_per_row: refused: no fit"]
    alone = row(implementation="triton", case=f"{CLASS}: 5x5")
    (line,) = class_table.not_timed(class_table.of_records([alone]))
    assert line.endswith("torch has no right row to compare with")


def test_a_wrong_row_of_torch_is_no_baseline_and_is_named(capsys):
    """Although it is the fastest; the comparison has not taken it for the ratio either."""
    wrong = failed("1x1", "torch", "the error exceeds its bound", design="by cuBLASLt", median_ms=0.1, kernels=["splitK_x"])
    results = class_table.of_records([*case("1x1", 1.0, triton=0.5), wrong])
    (judged,) = results[0].packages["triton"].cases
    assert judged.vendor.design == "matmul" and judged.ratio == 2.0
    named = "matmul 16-bit large: 1x1, torch by cuBLASLt (splitK_x): the error exceeds its bound"
    assert list(class_table.vendor_wrong(results)) == [named]
    assert class_table.show(results, quiet=True) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"torch is wrong, and no baseline: {named}",
        "1 cases, 0 rows without a time, 1 wrong ones of torch",
    ]


def test_of_a_repeated_row_the_last_counts():
    (result,) = class_table.of_records([*case("1x1", 1.0, triton=2.0), *case("1x1", 1.0, triton=0.5)])
    assert result.packages["triton"].ratios == [2.0]


def test_another_gpu_is_another_case():
    here, there = ([r for r in case("1x1", 1.0, triton=ms)] for ms in (1.0, 2.0))
    for r in there:
        r.target = "h100"
    (result,) = class_table.of_records([*here, *there])
    assert result.packages["triton"].ratios == [0.5, 1.0]


def test_the_whole_output(results, capsys):
    assert class_table.show(results) == 1, "a row of ours has failed"
    out = capsys.readouterr().out
    assert "16-bit large, Triton, against torch.matmul:\n  0.80  16-bit large: 2x2" in out
    assert "No time: matmul 16-bit large: 4x4" in out and out.endswith(
        "5 cases, 1 rows without a time, 0 wrong ones of torch\n"
    )
