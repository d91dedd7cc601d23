"""Results against the vendor library: the fastest design of each package, in the newest run, losses as well as wins."""

import pytest
from stand_ins import record

from perf.measure import records
from perf.render import figures, measured, results


def timed(
    implementation,
    design,
    us,
    *,
    case="3x4",
    precision="ieee",
    dtype="float32",
    date="2026-11-22",
    op="gemv",
    ratio=None,
    spread=0.1,
):
    ms = us / 1e3
    environment = {"date": date, "commit": "0123+45", "device": "a GPU", "torch": "2", "triton": "3", "cuda": "13"}
    return record(
        suite="smoke",
        case=case,
        op=op,
        problem={"dtype": dtype},
        implementation=implementation,
        design=design,
        precision=precision,
        target="a GPU",
        environment=environment,
        median_ms=ms,
        p20_ms=ms * (1 - spread),
        p80_ms=ms * (1 + spread),
        ratio_to_torch=ratio,
        call_ms=0.02,
    )


@pytest.fixture
def folder(tmp_path):
    """write(name, *records) -> the folder of records"""

    def write(name, *rows):
        records.write_json(tmp_path / f"{name}.json", rows)
        return tmp_path

    return write


def only(folder):
    ((case,),) = measured.suites(folder).values()
    return case


def test_the_fastest_of_each_package_and_of_the_vendor_counts(folder):
    rows = [timed("triton", "slow", 30), timed("triton", "fast", 10), timed("torch", "b", 25), timed("torch", "a", 20)]
    case = only(folder("smoke", *rows))
    assert (case.best("triton").design, case.best("cuda"), case.vendor.design) == ("fast", None, "a")


def test_a_wrong_result_is_no_result(folder):
    wrong = timed("triton", "wrong", 1)
    wrong.ok = False
    assert only(folder("smoke", wrong, timed("triton", "right", 10), timed("torch", "a", 20))).best("triton").design == "right"


def test_the_vendor_has_the_same_precision(folder):
    rows = [
        timed("triton", "x", 10, precision="fp16x3"),
        timed("torch", "tf32", 1, precision="tf32"),
        timed("torch", "ieee", 20),
    ]
    assert only(folder("smoke", *rows)).vendor.design == "ieee"  # fp16x3 has fp32 accuracy


def test_the_newest_run_of_a_case_counts(folder):
    for name, date in (("a", "2026-11-22"), ("b", "2026-11-21")):
        where = folder(name, timed("triton", name, 10, date=date), timed("torch", "t", 20, date=date))
    assert only(where).best("triton").design == "a"


@pytest.mark.parametrize("us, verdict", [(10, "ahead"), (19, "even"), (21, "even"), (40, "behind")])
def test_overlapping_spreads_are_even(folder, us, verdict):
    case = only(folder("smoke", timed("triton", "x", us), timed("torch", "t", 20)))
    assert case.verdict(case.best("triton")) == verdict


def test_the_page_has_wins_and_losses(folder):
    rows = [timed("triton", "won", 10, ratio=2.0), timed("cuda", "lost", 40, ratio=0.5), timed("torch", "t", 20, ratio=1.0)]
    page = results._of_gpu(folder("smoke", *rows))
    assert "| 3x4 | cuBLAS 20.0 (18.0-22.0) | `won` | 10.0 (9.00-11.0) | 2.00 | `lost` | 40.0 (36.0-44.0) | 0.50 |" in page
    assert "| [smoke](#smoke) | 1 | 2.00 | 2.00 | 2.00 | 1 / 0 / 0 | 0.50 | 0.50 | 0.50 | 0 / 0 / 1 |" in page
    assert "a GPU, 2026-11-22, torch 2, Triton 3, CUDA 13, commit 0123" in page


def test_a_suite_is_divided_by_precision_where_each_has_enough_cases():
    def cases(*kinds):
        vendors = [timed("torch", "t", 20, dtype=dtype) for dtype in kinds]
        return [measured.Case(str(i), "gemv", "ieee", vendor, []) for i, vendor in enumerate(vendors)]

    assert list(measured.parts("smoke", cases(*["float32"] * 5, *["bfloat16"] * 5))) == ["smoke: fp32", "smoke: bf16"]
    assert list(measured.parts("smoke", cases(*["float32"] * 9, "bfloat16"))) == ["smoke"]


def test_the_charts_of_the_docs_can_be_drawn():
    pytest.importorskip("matplotlib")
    pictures = figures.of_docs(measured.RESULTS / "h200")
    assert set(pictures) == {"summary", "gemm_ladder"}
    for picture in pictures.values():
        assert picture.data["title"] in picture.svg() and "NVIDIA H200" in picture.data["origin"]


def test_a_microsecond_has_three_digits():
    assert [measured.us(ms) for ms in (0.0012345, 0.012345, 0.12345, 1.2345)] == ["1.23", "12.3", "123", "1234"]
