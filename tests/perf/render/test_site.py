"""The site: its navigation, pages, API and glossary, and that a link that leads nowhere fails the build."""

import ast
import importlib.util
import inspect
import re

import pytest

import tritonkernels
from perf import ROOT
from perf.__main__ import main
from perf.render.site import api, check, command, pages
from tests.tools.test_docs import links

CHAPTERS = ("gemm", "gemv", "conv2d", "matmul")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder with all pages of the repository."""
    folder = tmp_path_factory.mktemp("pages")
    pages.write(folder, {command.API: api.markdown()})
    return folder


def test_the_navigation_has_every_page_of_the_docs(written):
    named = set(re.findall(r'= "([\w/.]+\.(?:md|html))"', (command.HERE / "zensical.toml").read_text()))
    docs = {str(path.relative_to(written)) for path in (written / "docs").rglob("*.md")}
    assert len(docs) > 20 and docs <= named
    assert {name for name in named if not (written / name).exists()} == {"twins/index.html", "report/index.html"}


def test_every_link_of_every_page_leads_to_a_page(written):
    sources = [page for page in written.rglob("*.md") if not page.read_text().startswith(pages.SOURCE)]
    found = [(page, link.partition("#")[0]) for page in sources for link in links(page.read_text())]
    assert len(found) > 500
    astray = [link for page, link in found if link and not (page.parent / link).exists() and "twins/" not in link]
    assert astray == []


def test_pages_mirror_a_repository(tmp_path):
    root = tmp_path / "repository"
    texts = {
        "README.md": "[a](docs/a.md#b) `[c](d)` [e](code) ![f](docs/f.svg) [g](https://g)\n```\n[h](i)\n```\n",
        "CHANGELOG.md": "",
        "docs/a.md": "[up](../README.md#top) [`x`](../code/x.py) 0.5 / 0.4, `1 / 2`",
        "docs/f.svg": "<svg/>",
        "code/x.py": "x = '[no](link)'\n",
        "code/y.cuh": "int y;\n",
        "code/z.h": "int z;",  # whose last line has no end
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    pages.write(tmp_path / "pages", {root / "docs/new.md": "[a](a.md)"}, root)
    made = {str(path.relative_to(tmp_path / "pages")): path.read_text() for path in (tmp_path / "pages").rglob("*.*")}
    assert made["index.md"] == texts["README.md"].replace("[e](code)", "[e](code/index.md)")
    assert made["docs/a.md"] == "[up](../index.md#top) [`x`](../code/x.py.md) 0.5\u00a0/\u00a00.4, `1 / 2`"
    assert "~~~~python\nx = '[no](link)'\n~~~~" in made["code/x.py.md"] and "~~~~cuda\n" in made["code/y.cuh.md"]
    assert "int z;\n~~~~\n" in made["code/z.h.md"]
    assert "- [x.py](x.py.md)\n- [y.cuh](y.cuh.md)\n" in made["code/index.md"]
    assert made["docs/f.svg"] == "<svg/>" and made["docs/new.md"] == "[a](a.md)"


def test_a_design_s_file_leads_to_its_twin():
    text, linked = pages.relinked("[a](../tritonkernels/gemm/tiled.py) [b](../tritonkernels/target.py)", ROOT / "docs/a.md")
    assert text == "[a](../twins/gemm/tiled.html#triton) [b](../tritonkernels/target.py.md)"
    assert linked == [ROOT / "tritonkernels/target.py"]


def test_a_notebook_is_a_page(written):
    page = (written / "examples/tour.ipynb.md").read_text()
    assert page.startswith("# A tour") and "```python\ntk.doctor()\n```" in page and "](../index.md)" in page


def test_the_api_has_every_public_name_with_its_signature():
    page = api.markdown()
    for name in set(tritonkernels.__all__) - {"OPS"}:
        section = page.split(f"### tritonkernels.{name} {{")[1].split("\n### ")[0]
        signature = re.search(r"```python\n(.*?)\n```", section, re.DOTALL)[1]
        shown, source = (
            ast.parse(text).body[0] for text in (f"def {signature}: ...", inspect.getsource(getattr(tritonkernels, name)))
        )
        assert (ast.unparse(shown.args), ast.unparse(shown.returns)) == (ast.unparse(source.args), ast.unparse(source.returns))
    assert "\nActivation = Literal['relu', 'gelu', 'silu']\n" in page, "signatures name it"
    for name in ("tritonkernels.nn.replace", "tritonkernels.errors.ShapeError", "cuda_reference.gemm"):
        assert f'### {name} {{ data-toc-label="{name.rpartition(".")[2]}" }}\n' in page


def test_docstrings_become_markdown():
    prose = "C = A * B, <exact>, in `a_b`.\n\n"
    arguments = "a       (M, K)\n        or more\nalpha, beta  numbers\nlonger_name of it\n\n"
    code = "    c = x * y"
    items = "- **`a`**: (M, K)\n    or more\n- **`alpha, beta`**: numbers\n- **`longer_name`**: of it\n\n"
    assert api.prose(prose + arguments + code) == f"C = A \\* B, \\<exact>, in `a_b`.\n\n{items}{code}\n\n"


def test_the_glossary_is_in_alphabetical_order_and_linked():
    text = (ROOT / "docs/glossary.md").read_text()
    terms = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert terms == sorted(terms, key=str.casefold) and len(set(terms)) == len(terms)
    needed = {"tile", "fragment", "slice", "epilogue", "sector", "wave", "occupancy", "bank conflict", "swizzle", "split-K"}
    assert needed | {"roofline", "warp", "cluster", "TMA", "mbarrier"} <= set(terms)
    assert all("](glossary.md" in (ROOT / f"docs/{chapter}.md").read_text() for chapter in CHAPTERS)


FAULTS = {
    '<a href="b.html">': "b.html does not exist",
    '<a href="a.html#there">': "has no such anchor",
    '<a href="../outside.html">': "does not exist",
    '<img src="x.png">': "x.png does not exist",
    '<script src="https://x/y.js"></script>': "is loaded from elsewhere",
    '<link rel="stylesheet" href="//x/y.css">': "is loaded from elsewhere",
    "<style>@import '//x/y.css'</style>": "a style loads from elsewhere",
    '<p style="background: url(https://x/y.png)">': "a style loads from elsewhere",
}


@pytest.mark.parametrize("html", FAULTS)
def test_a_fault_of_the_site_is_named(html, tmp_path):
    (tmp_path / "outside.html").write_text("")
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text(html)
    (problem,) = check.problems(site)
    assert problem.startswith("a.html: ") and problem.endswith(FAULTS[html])


def test_a_sound_site_has_no_fault(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text('<p id="here"><a href="#here"><a href="https://x"><img src="data:image/png;base64,">')
    (tmp_path / "sub/b.html").write_text('<a href="../a.html#here"><a href="/a.html"><a href="mailto:a@b">')
    assert list(check.problems(tmp_path)) == []
    (tmp_path / "a.css").write_text("@import url(https://x/y.css)")
    assert list(check.problems(tmp_path)) == ["a.css: loads from elsewhere"]


def test_without_its_generator_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main(["site", "--out", str(tmp_path / "site")])
    assert "make docs-site" in capsys.readouterr().err and not (tmp_path / "site").exists()


def test_it_replaces_nothing_but_a_site(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SystemExit):
        main(["site", "--out", str(tmp_path)])
    assert "is no site" in capsys.readouterr().err and (tmp_path / "mine.txt").exists()


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="zensical is not installed: make docs-site")
def test_the_whole_site(tmp_path):
    assert main(["site", "--out", str(tmp_path / "site")]) == 0
    assert "swizzle" in (tmp_path / "site/search.json").read_text() and (tmp_path / "site/twins/gemm/tiled.html").exists()
