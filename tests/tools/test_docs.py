"""The docs are current: generated parts agree with records and designs, and links work."""

import re
from pathlib import Path

import pytest

from perf.render.results import anchor
from tests import children

ROOT = Path(__file__).parents[2]
TRACKED = ("*.md", "docs/**/*.md", "perf/**/*.md", "tritonkernels/**/*.md", "cuda_reference/**/*.md", "tests/**/*.md")
PAGES = sorted({path for pattern in TRACKED for path in ROOT.glob(pattern)})


def test_what_is_generated_is_current():
    run = children.run("-m", "perf", "docs", "--check")
    assert run.returncode == 0, f"{run.stdout}{run.stderr}run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert [link for link in links(page.read_text()) if not exists(page, link)] == []


def test_a_broken_link_or_anchor_is_noticed():
    page = ROOT / "docs/gemm.md"
    assert links("[a](b.md#c) ![d](e.svg) `[f](g)` [h](https://i)\n```\n[j](k)\n```\n") == ["b.md#c", "e.svg"]
    assert exists(page, "gemv.md") and exists(page, "#z_order") and exists(page, "results.md#fp32-matrix-products")
    assert not exists(page, "gem.md") and not exists(page, "#zorder") and not exists(page, "results.md#fp32")


def links(text):
    """The relative links of a page, without those in code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(\s*([^)\s]+)", text) if "://" not in link]


def exists(page, link):
    """Whether the file exists, and the heading if the link names one."""
    name, _, heading = link.partition("#")
    path = page.parent / name if name else page
    return path.exists() and (not heading or heading in anchors(path.read_text()))


def anchors(text):
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
