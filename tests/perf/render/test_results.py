"""Results against the vendor library: the fastest design of each package, in the newest run, losses as well as wins."""

import re

import pytest
from stand_ins import record

from perf import ROOT
from perf.measure import measured, records
from perf.measure.models.one import EAGER, FORWARD, GRAPH, Row
from perf.render import figures, results
from perf.show import table


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
    assert "| [smoke](#smoke) | 1 | 2.00 | 2.00 | 1 / 0 / 0 | 0.50 | 0.50 | 0 / 0 / 1 |" in page
    assert "Suite `smoke`: a GPU, 2026-11-22, torch 2, Triton 3, CUDA 13.\n" in page and "0123" not in page
    assert page.index(results.NO_MODELS) < page.index(results.NO_CLASSES)


def test_a_suite_is_divided_by_precision_where_each_has_enough_cases():
    def cases(*kinds):
        vendors = [timed("torch", "t", 20, dtype=dtype) for dtype in kinds]
        return [measured.Case(str(i), "gemv", "ieee", vendor, []) for i, vendor in enumerate(vendors)]

    assert list(measured.parts("smoke", cases(*["float32"] * 5, *["bfloat16"] * 5))) == ["smoke: fp32", "smoke: bf16"]
    assert list(measured.parts("smoke", cases(*["float32"] * 9, "bfloat16"))) == ["smoke"]


def of_class(name, triton_us, cuda_us, *, torch_us=10.0, seed=1, **cuda_changes):
    """The rows of a case of a class, on which torch takes so long."""
    us = {"triton": triton_us, "cuda": cuda_us, "torch": torch_us}
    rows = [timed(who, f"{who}'s", own, case=name, op="matmul", ratio=torch_us / own) for who, own in us.items()]
    for row in rows:
        row.suite, row.seed = "classes", seed
    vars(rows[1]).update(cuda_changes)
    rows[2].kernels = ["nvjet_64x8"]
    return rows


REFUSED = {"ok": False, "median_ms": None, "ratio_to_torch": None, "message": "refused: why"}


@pytest.fixture
def of_classes(folder):
    """A folder of records of two classes: 0.5 and 2.0 in Triton in the first, in CUDA 1.25 and nothing."""
    rows = of_class("16-bit large: 512x512x512 float16 NN", 20.0, 8.0)
    rows += of_class("16-bit large: 1024x512x512 float16 NN", 5.0, 8.0, **REFUSED)
    return folder("classes", *rows, *of_class("gemv fp32: 300x400", 10.0, 10.0, seed=2))


def test_classes_are_the_first_on_the_page_each_with_its_own_mean(of_classes):
    page = results._of_gpu(of_classes)
    assert page.startswith("\n## a GPU\n") and page.index("### Classes") < page.index("### Suites")
    assert "| 16-bit large | 2 | 1.00, 0.90 | 1.00 | 0.50! | 1 | 1 | 0 | 1.25 | 1.25 | 0 | 0 | 1 |" in page
    assert "- Triton 0.50  16-bit large: 512x512x512 float16 NN: 20.0 us by triton's" in page and "nvjet_64x8" in page
    assert "- matmul 16-bit large: 1024x512x512 float16 NN, CUDA cuda's: refused: why" in page
    assert f"](charts/{of_classes.name}/classes.svg)" in page and results.NO_CLASSES not in page


def test_the_picture_of_classes_has_every_case_and_no_commit(of_classes):
    pytest.importorskip("matplotlib")
    picture = figures.of_classes(of_classes)
    row = picture.data["rows"]["16-bit large"]
    assert row["goal"] == [1.0, 0.9]
    assert row["triton"] == {"ratios": [0.5, 2.0], "mean": 1.0, "worst": "512x512x512 fp16 NN", "untimed": 0}
    assert row["cuda"] == {"ratios": [1.25], "mean": 1.25, "worst": "512x512x512 fp16 NN", "untimed": 1}
    assert list(picture.data["rows"]) == ["16-bit large", "gemv fp32"]
    assert picture.data["origin"] == "a GPU, 2026-11-22, torch 2, Triton 3, CUDA 13"
    assert "512x512x512…: 0.50; 1 without a time" in picture.svg()


@pytest.fixture
def of_models(of_classes):
    """The same folder with a model, on which CUDA takes 4 ms where torch takes 5."""
    times = {whose: {GRAPH: {"median_us": us}, EAGER: {"median_us": us}} for whose, us in (("torch", 5e3), ("cuda", 4e3))}
    environment = timed("torch", "t", 1).environment
    found = {"replaced": {"cuda": 54}, "layers": 54, "times": times, "error": {"torch": 1e-3, "cuda": 1e-3}, "ok": True}
    row = Row("resnet50", "ResNet-50", "bfloat16", "8 images", FORWARD, **found, environment=environment)
    records.write_json(of_classes / "models.json", [row])
    return of_classes


def test_models_are_before_the_classes(of_models):
    page = results._of_gpu(of_models)
    assert page.index("### Whole models") < page.index(f"](charts/{of_models.name}/models.svg)") < page.index("### Classes")
    assert "| ResNet-50 | bfloat16 | 8 images | cuda | 54 of 54 | 1.25 | 1.25 |" in page and results.NO_MODELS not in page


def test_readme_has_pictures_once_there_are_records(of_models, monkeypatch):
    monkeypatch.setattr(measured, "RESULTS", of_models.parent)
    text = results.of_readme(of_models.name)
    assert re.findall(r"\(docs/charts/(.*?)\)", text) == [f"{of_models.name}/{name}.svg" for name in ("models", "classes")]
    assert results.of_readme("none") == f"{results.NO_MODELS}\n\n{results.NO_CLASSES}"


def test_without_a_time_there_is_no_picture(folder):
    rows = of_class("tf32: 512x512x512", 10.0, 10.0)
    for row in rows:
        vars(row).update(REFUSED)
    where = folder("classes", *rows)
    assert figures.of_classes(where) is None and "charts/" not in results._of_gpu(where)


@pytest.mark.parametrize("days, said", [(["22"], "2026-11-22"), (["24", "22", "23"], "2026-11-22 to 2026-11-24")])
def test_an_origin_has_days_and_versions_but_no_commit(days, said):
    def environment(day):
        return timed("torch", "t", 1, date=f"2026-11-{day}T12:00").environment | {"torch": f"2.{int(day) // 24}"}

    versions = "2.0" if len(days) == 1 else "2.0 and 2.1"
    assert measured.origin_in([environment(day) for day in days]) == f"a GPU, {said}, torch {versions}, Triton 3, CUDA 13"


def test_the_newest_gpu_is_the_first(tmp_path):
    for name in ("a100", "unheard of", "h100", "b200", "h200"):
        (tmp_path / name).mkdir()
    assert [path.name for path in measured.gpus(tmp_path)] == ["b200", "h200", "h100", "a100", "unheard of"]


def test_every_page_has_the_gpus_in_one_order():
    for page in ("docs/results.md", "docs/choice.md", "README.md", "docs/running.md", "perf/results/README.md"):
        lines = [line for line in (ROOT / page).read_text().splitlines() if line.startswith(("##", "- NVIDIA"))]
        named = [gpu for line in lines for gpu in ("H200", "H100") if gpu in line]
        assert named == sorted(named, reverse=True) and set(named) == {"H100", "H200"}, page


def test_links_to_suites_lead_to_those_of_the_same_gpu():
    page = results.markdown()
    headings = [line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")]
    anchors = [results.anchor(heading) for heading in headings]
    assert len(set(anchors)) == len(anchors)
    *_, of_first, of_second = page.split("\n## ")
    for text, gpu in ((of_first, ""), (of_second, "-h100")):
        linked = [line.partition("](#")[2].partition(")")[0] for line in text.splitlines() if line.startswith("| [")]
        assert linked and set(linked) <= set(anchors) and all(link.endswith("-h100") == bool(gpu) for link in linked)


def test_the_charts_of_the_docs_can_be_drawn():
    pytest.importorskip("matplotlib")
    pictures = figures.of_docs(measured.RESULTS / "h200")
    assert set(pictures) == {"gemm_ladder", "matmul_ladder", "conv2d_channels"}
    for picture in pictures.values():
        assert picture.data["title"] in picture.svg() and "NVIDIA H200" in picture.data["origin"]


def test_a_microsecond_has_three_digits():
    assert [table.us(ms) for ms in (0.0012345, 0.012345, 0.12345, 1.2345)] == ["1.23", "12.3", "123", "1234"]
