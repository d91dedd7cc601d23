"""What a notebook shows: doctor, explain, designs, refusals and swaps as tables that parse, with all their text escaped."""

import re
from html.parser import HTMLParser

import pytest
import torch

import cuda_reference
import tritonkernels
from tritonkernels import errors, nn
from tritonkernels.report import Report

PACKAGES = pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)


class Cells(HTMLParser):
    """The texts of the cells, in order; every tag must be one of a table's and closed by its own."""

    def __init__(self, shown):
        super().__init__()
        self.texts, self._open = [], []
        self.html = shown._repr_html_()
        self.feed(self.html)
        assert not self._open and "table" in self.html

    def handle_starttag(self, tag, attributes):
        assert tag in ("table", "tr", "th", "td") and {name for name, _ in attributes} <= {"style"}
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, text):
        assert self._open[-1] in ("th", "td")
        self.texts.append(text)


@PACKAGES
def test_doctor_and_explain(package):
    doctor = package.doctor()
    cells = Cells(doctor).texts
    assert set(map(str, doctor)) <= set(cells)
    a = torch.empty(512, 512, device="meta")
    report = package.explain("gemm", a, a, target="h200")
    cells = Cells(report).texts
    assert {*map(str, report), report["design"], "bound_by", *map(str, report["config"])} <= set(cells)
    assert f"{report['predicted']['seconds']:.4g}" in cells and cells.count("seconds") == 2, (
        "in the prediction, and the ranking"
    )


@PACKAGES
def test_designs(package):
    designs = package.designs("conv2d")
    cells = Cells(designs).texts
    assert cells[:4] == ["design", "kind", "summary", "mirrors"]
    assert cells[4:] == [text for d in designs for text in (d.name, d.kind, d.summary, d.mirrors)]


def test_refusals():
    a = torch.empty(16, 16, device="meta").to(torch.float8_e5m2)
    with pytest.raises(errors.UnsupportedError) as refusal:
        cuda_reference.explain("matmul", a, a, target="a100")
    texts = Cells(refusal.value).texts
    assert {text for refused in refusal.value.refusals.items() for text in refused} < set(texts)
    with pytest.raises(errors.ShapeError) as mistake:
        tritonkernels.explain("gemm", torch.ones(2, 3), torch.ones(2, 3))
    assert Cells(mistake.value).texts[-2:] == ["what to do", mistake.value.remedy]
    assert Cells(errors.UnsupportedError("never")).texts == ["refused", "never"]


def test_swaps():
    swaps = nn.replace(torch.nn.Sequential(torch.nn.Linear(3, 4)), only_where_faster=False)
    assert Cells(swaps).texts[:6] == ["module", "kind", "outcome", "ours, us", "torch, us", "why"]


def test_text_is_escaped_and_colours_are_the_page_s():
    fault = "<script>alert('x')</script> & \"more\""
    report = Report(fault=fault, none=None, empty={}, config={"<b>": 1.23456}, rows=[{"time": 0.5, "config": {"BM": 64}}])
    cells = Cells(report)
    of_facts = ["fault", fault, "none", "unknown", "empty", "config", "<b>", "1.235"]
    assert cells.texts == [*of_facts, "rows", "time", "config", "0.5", "BM=64"]
    styles = set(re.findall(r"[\w-]*(?:color|background)[\w-]*:[^;\"]*", cells.html))
    assert styles == {"color:inherit", "background:none"}
