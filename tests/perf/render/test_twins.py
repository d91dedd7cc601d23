"""Twin pages: complete, light, without a network, and with the records' numbers."""

import difflib
import functools
import os
import re
import shutil
import subprocess
from collections import Counter
from html import unescape
from html.parser import HTMLParser

import pytest

from perf import ROOT
from perf.__main__ import main
from perf.measure import kernels, measured, records
from perf.render import chapter
from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

pytest.importorskip("jinja2")
pytest.importorskip("pygments")
from perf.render.twins import command, highlight, machine, pages, sources

CHROMIUM = shutil.which("chromium")
PATTERN = "../docs/{}.html"
LARGEST = ("matmul", "persistent")
SHOWN = (
    ("gemm", "tiled"),
    ("gemm", "split_k"),
    LARGEST,
    ("matmul", "naive"),
    ("matmul", "dmma"),
    ("conv2d_bias", "channel_sums"),
)
VOID = {"meta", "input"}


class Page(HTMLParser):
    """What a page has: ids, links, tags, the text of each element with an id, and the same without the parts folded into it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links = [], Counter(), [], []
        self.whole, self.own = Counter(), Counter()  # {id: text}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags[tag] += 1
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [value for name, value in attrs if name in ("href", "src", "action", "data")]
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        ids = [attributes["id"] for _, attributes in self.open if "id" in attributes]
        for name in ids:
            self.whole[name] = (self.whole[name] or "") + text
        holders = [a for tag, a in self.open if a.get("class") in ("part", "code", "code sass")]
        in_a_line = any(a.get("class") == "l" for _, a in self.open)
        if ids and holders and in_a_line:
            self.own[ids[-1]] = (self.own[ids[-1]] or "") + text


def twin_of(op, name):
    return next(twin for twin in pages.of(op) if twin.rung.name == name)


@functools.cache
def text_of(*design):
    return command.page(twin_of(*design), PATTERN)


@functools.cache
def page_of(*design):
    return Page(text_of(*design))


@pytest.mark.parametrize("design", SHOWN, ids="/".join)
def test_each_source_is_there_in_full(design):
    files = twin_of(*design).files
    assert files
    for anchor, path in files.items():
        assert page_of(*design).own[anchor] == path.read_text()


@pytest.mark.parametrize("design", SHOWN, ids="/".join)
def test_all_that_a_file_reaches_unfolds_in_it_once(design):
    files = twin_of(*design).files
    for anchor, path in files.items():
        parts = [name.partition("/")[2] for name in page_of(*design).ids if name.startswith(f"{anchor}/")]
        assert len(parts) == len(set(parts))
        others = kernels.reached([path]) - {path}
        if not others & set(files.values()):
            assert set(parts) == {str(file.relative_to(ROOT)) for file in others}
        for part in parts:
            assert page_of(*design).own[f"{anchor}/{part}"] == (ROOT / part).read_text()


def test_a_part_unfolds_at_the_line_that_names_it(tmp_path, monkeypatch):
    files = {
        "tiled.py": "from .parts.a import (\n    x,\n)\nfrom .parts import b\nlast\n",
        "parts/a.py": "from . import b\n",
        "parts/b.py": "b\n",
    }
    for name, text in files.items():
        path = tmp_path / "tritonkernels/gemm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(kernels, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    html = sources.Pane("triton", tmp_path / "tritonkernels/gemm/tiled.py", {}).html()
    html = re.sub("<(?!/?(details|summary|a ))[^>]*>", "", html).replace("</a>", "")
    a, b = ("tritonkernels/gemm/parts/a.py", "tritonkernels/gemm/parts/b.py")
    link = f'<details><summary>from . import b\n</summary>see <a href="#triton/{b}">{b}</details>'
    statement = "from .parts.a import (\n    x,\n)\n"
    assert html == (
        f"<details><summary>{statement}</summary>{a}{link}</details>"
        f"<details><summary>from .parts import b\n</summary>{b}b\n</details>last\n"
    )


@pytest.mark.parametrize("twin", pages.every(), ids=lambda twin: twin.address)
def test_highlighting_changes_no_character(twin):
    for path in twin.files.values():
        assert unescape(re.sub("<[^>]*>", "", "".join(highlight.source(path)))) == path.read_text()


def test_pages_are_light_and_need_no_network():
    assert len(text_of(*LARGEST).encode()) < 1e6 and len(text_of("gemm", "tiled").encode()) < 300e3
    for design in SHOWN:
        page, style = page_of(*design), text_of(*design).partition("</style>")[0]
        assert not {"script", "img", "link", "iframe", "object"} & set(page.tags)
        assert [link for link in page.links if ":" in link] == [] and "url(" not in style and "@import" not in style


def test_links_and_anchors_lead_somewhere():
    addresses = {f"../{twin.address}" for twin in pages.every()} | {f"../index.html#{op}" for op in pages.by_operation()}
    for design in SHOWN:
        page = page_of(*design)
        assert len(page.ids) == len(set(page.ids))
        outside = {link for link in page.links if not link.startswith("#")}
        assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
        name, anchor = twin_of(*design).chapter
        assert outside - addresses == {f"../{PATTERN.format(name)}{anchor}"}
        assert not anchor or re.search(f"^#+ {anchor[1:]}$", (ROOT / f"docs/{name}.md").read_text(), re.MULTILINE)
        assert {"sass", "difference", *twin_of(*design).files} <= set(page.ids), "addresses that the docs use"
    assert twin_of("gemm", "tiled").chapter == ("gemm", "#tiled") and twin_of("conv2d_bias", "channel_sums").chapter == (
        "conv2d",
        "",
    )


def test_both_hot_loops_of_a_gpu_stand_side_by_side():
    for gpu in measured.gpus():
        rows = {(r["op"], r["design"], r["implementation"]): r for r in records.read_rows(gpu / "code.json")}
        for op, name in SHOWN:
            text, own = (counter[gpu.name] or "" for counter in (page_of(op, name).whole, page_of(op, name).own))
            codes = [rows[op, name, package] for package in measured.PACKAGES if (op, name, package) in rows]
            assert own == "".join(f"{line}\n" for code in codes for line in code["listing"])
            for code in codes:
                assert str(code["registers"]) in text and f"{code['stack_bytes']} bytes" in text
                assert (
                    f"{code['shared_bytes'] / 1024:.1f} KB" in text and f"{code['hot_loop_instructions']} instructions" in text
                )


def test_times_are_those_of_the_records():
    twin = twin_of("gemm", "tiled")
    for gpu in machine.gpus(twin):
        (case,) = (c for c in measured.suites(gpu.folder)["ladder"] if c.name == "8192x8192x8192")
        for package in measured.PACKAGES:
            (record,) = (r for r in case.of(package) if r.design == "tiled")
            assert (
                f"{1e3 * record.median_ms:.0f} µs, {record.ratio_to_torch:.2f} of cuBLAS"
                in page_of("gemm", "tiled").whole[gpu.name]
            )


def test_a_design_in_no_suite_says_that_it_has_no_time():
    (gpu, *_) = machine.gpus(twin_of("conv2d_bias", "channel_sums"))
    assert gpu.case is None and "in none of the suites" in page_of("conv2d_bias", "channel_sums").whole[gpu.name]
    assert "in none of the suites" not in text_of("gemm", "tiled")


def test_what_is_not_recorded_is_said(tmp_path, monkeypatch):
    machine._codes.cache_clear()
    twin = twin_of("gemm", "tiled")
    (tmp_path / "h200").mkdir()
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    assert "No GPU has records of this design" in command.page(twin, PATTERN)
    rows = [r for r in records.read_rows(ROOT / "perf/results/h200/code.json") if (r["op"], r["design"]) == ("gemm", "tiled")]
    triton, _ = sorted(rows, key=lambda r: r["implementation"], reverse=True)
    triton["environment"] |= {"kernels": {}}
    records.write_rows(tmp_path / "h200/code.json", [triton])
    machine._codes.cache_clear()
    page = Page(command.page(twin, PATTERN))
    machine._codes.cache_clear()
    assert "Not recorded. python -m perf inspect gemm.tiled --arch h200" in page.whole["h200"]
    assert page.whole["h200"].count("other sources than those above") == 1


def test_a_missing_twin_has_its_reason():
    for op, name in (("matmul", "naive"), ("matmul", "dmma")):
        assert unescape(text_of(op, name)).count(f": {twin_of(op, name).rung.why}") == 1
        assert page_of(op, name).whole["h200"].count("the hot loop") == 1, "no empty pane for the other package"


def test_differences_are_to_the_design_that_it_builds_on():
    builds_on = {
        ("gemm", "split_k"): "rasterized",
        ("matmul", "tma"): "wgmma",
        ("gemv", "vectorized"): "warp_per_row",
    }
    for design, before in builds_on.items():
        assert twin_of(*design).before.rung.name == before
    assert twin_of("gemm", "naive").before is None and twin_of("matmul", "tiled").before is None
    section = unescape(re.sub("<[^>]*>", "", text_of("gemm", "split_k").partition('id="difference"')[2]))
    for path in ("tritonkernels/gemm/{}.py", "cuda_reference/gemm/{}.cuh", "cuda_reference/gemm/{}.py"):
        old, new = ((ROOT / path.format(name)).read_text().splitlines() for name in ("rasterized", "split_k"))
        lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
        assert lines and "\n".join(line.rstrip() for line in lines) in section


def test_a_difference_is_to_a_design_of_the_same_language():
    twin = twin_of("matmul", "in_turn")
    assert twin.before.rung.name == twin.before_with("cuda").rung.name == "multicast"
    assert twin.before_with("triton").rung.name == "tile_loop", "multicast is not written in Triton"
    assert "--- tile_loop.py" in text_of("matmul", "in_turn") and "to tile_loop, as multicast is" in re.sub(
        "<[^>]*>", "", text_of("matmul", "in_turn")
    )


@pytest.mark.parametrize(
    "line, hang",
    [
        ("    x = 1  # one", 4),
        ("    # why", 2),
        ("// why", -1),
        ("    //   - why", 7),
        ("//     last", 3),
        ("const int x = 1;", 0),
    ],
)
def test_a_comment_hangs_below_its_first_word(line, hang, tmp_path):
    """In columns, without the 4 that page.css adds."""
    path = tmp_path / ("a.cuh" if "//" in line or ";" in line else "a.py")
    path.write_text(f"{line}\n")
    assert re.findall(r"--i:(-?\d+)", "".join(highlight.source(path))) == ([str(hang)] if hang else [])


def test_a_line_of_a_difference_hangs_below_its_code():
    assert re.findall(r"--i:(\d+)", "".join(highlight.difference(["+    x = 1", "-y = 1", "     z = 1"]))) == ["5", "1", "5"]


def test_neighbours_are_those_of_the_ladder():
    names = [rung.name for rung in LIBRARY.operation("gemm").own]
    before, after = (names[names.index("tiled") + step] for step in (-1, 1))
    assert [x and x.rung.name for x in twin_of("gemm", names[0]).neighbours] == [None, names[1]]
    assert f'rel="prev" href="../gemm/{before}.html"' in text_of("gemm", "tiled")
    assert f'rel="next" href="../gemm/{after}.html"' in text_of("gemm", "tiled")


def test_the_docs_link_to_every_page():
    """On a site: each source that docs/designs.md names is on a page."""
    linked = re.findall(r"\]\(\.\./([^)]*)\)", (ROOT / "docs/designs.md").read_text())
    addresses = [pages.of_source(path) for path in linked]
    assert None not in addresses and {x.partition("#")[0] for x in addresses} == {twin.address for twin in pages.every()}
    assert pages.of_source("cuda_reference/gemm/tiled.py") == "gemm/tiled.html#cuda-launch"
    assert pages.of_source("cuda_reference/common/tma.cuh") is None


def test_the_command_writes_pages_and_an_index(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "page", lambda twin, docs: f"{twin.address} {docs}")
    assert main(["twins", "--out", str(tmp_path / "new")]) == 0
    index = Page((tmp_path / "new/index.html").read_text())
    assert set(index.ids) == set(pages.by_operation()) <= set(OPS)
    written = {str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*.html")}
    assert written == {twin.address for twin in pages.every()} | {"index.html"}
    designs = os.path.relpath(chapter.DOCS / "designs.md", tmp_path / "new")
    assert {link for link in index.links if link[0] != "#"} == written - {"index.html"} | {designs}
    docs = (tmp_path / "new/gemm/tiled.html").read_text().split()[1]
    assert (tmp_path / "new" / docs.format("gemm")).resolve() == chapter.DOCS / "gemm.md"
    assert main(["twins", "--out", str(tmp_path / "one"), "--design", "gemm/tiled", "--docs", PATTERN]) == 0
    assert [path.read_text() for path in (tmp_path / "one").rglob("*.html")] == [f"gemm/tiled.html {PATTERN}"]


@pytest.mark.parametrize("arguments, said", [(["--design", "gemm/tile"], "no design gemm/tile: choose from gemm/naive, ")])
def test_bad_arguments_are_told(arguments, said, capsys):
    with pytest.raises(SystemExit) as refused:
        main(["twins", *arguments])
    assert refused.value.code == 2 and said in capsys.readouterr().err


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setattr(command, "NEEDED", ("jinja2", "no_such_package"))
    with pytest.raises(SystemExit):
        main(["twins"])
    assert "need no_such_package: pip install 'tritonkernels[report]'" in capsys.readouterr().err


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_a_browser_wraps_lines_unfolds_parts_and_switches_gpus(tmp_path):
    """On a phone, a small and a large screen, with all parts unfolded: nothing is wider than the page, cut, or moved."""
    tiled, largest = twin_of("gemm", "tiled"), twin_of(*LARGEST)
    shown = [(tiled, 390), (tiled, 1100), (tiled, 1600), (largest, 390)]
    for twin, _ in shown:
        (tmp_path / f"{twin.rung.name}.html").write_text(text_of(twin.op, twin.rung.name))
    probe = """
        const page = frame.contentDocument, lines = [...page.querySelectorAll(".l")];
        const seen = () => lines.filter((line) => line.checkVisibility()).length, folded = seen();
        for (const fold of page.querySelectorAll("details")) fold.open = true;
        const cut = [...page.querySelectorAll(".l, .code, td")].filter((x) => x.scrollWidth > x.clientWidth).length;
        const start = (line) => {
            const range = page.createRange();
            range.setStart(line, 0);
            range.setEnd(page.createTreeWalker(line, 4).nextNode(), 1);
            return range.getBoundingClientRect().left - line.getBoundingClientRect().left;
        };
        const moved = lines.filter((line) => line.checkVisibility() && Math.abs(start(line)) > 1).length;
        const [left, right] = [...page.querySelectorAll("#triton, #cuda")].map((x) => x.getBoundingClientRect());
        const gpus = () => [...page.querySelectorAll(".gpu")].filter((x) => x.offsetHeight).map((x) => x.id), first = gpus();
        [...page.querySelectorAll("label")].at(-1).click();
        const width = page.documentElement.scrollWidth;
        frame.title = [width, cut, moved, folded < seen(), left.top === right.top, ...first, ...gpus()].join(" ");
    """
    frames = "".join(
        f'<iframe width="{width}" height="900" style="border: 0" src="{twin.rung.name}.html" onload="probe(this)"></iframe>'
        for twin, width in shown
    )
    frame = tmp_path / "frames.html"
    frame.write_text(f"<script>function probe(frame) {{ {probe} }}</script>{frames}")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
        "--dump-dom",
    ]
    options += ["--no-first-run", "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run([CHROMIUM, *options, f"file://{frame}"], capture_output=True, text=True, timeout=120)
    first, *_, last = (gpu.name for gpu in machine.gpus(tiled))
    expected = [f"{width} 0 0 true {str(width > 900).lower()} {first} {last}" for _, width in shown]
    assert re.findall(r'<iframe[^>]* title="([^"]*)"', done.stdout) == expected, done.stderr
