"""The report: self-contained, complete, with the records' numbers, and told at once where it cannot be made."""

import json
import lzma
import re
import shutil
import subprocess
from collections import Counter
from html import unescape
from html.parser import HTMLParser

import pytest

from perf import ROOT
from perf.__main__ import main
from perf.measure import packed, records
from perf.measure.baselines import yardstick
from perf.render import measured
from perf.render.report import command, gather
from tritonkernels import OPS
from tritonkernels.launch import LIBRARY

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("pygments")

LOADS = {"src", "href", "action", "data", "poster"}
VOID = {"meta", "input", "br"}
PACKAGES = {"triton": "Triton", "cuda": "CUDA", "tritonkernels": "Triton", "cuda_reference": "CUDA"}
CHROMIUM = shutil.which("chromium")


class Page(HTMLParser):
    """Its tags, ids, references, and the rows of its tables of results: [(attributes, texts of the cells)] of each."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.references, self.tables, self.cell = [], Counter(), [], [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags[tag] += 1
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.references += [value for name, value in attrs if name.split(":")[-1] in LOADS]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append((attributes, []))
        elif tag == "td":
            self.cell = ""
        elif tag == "small" and self.cell is not None:
            self.cell += "\n"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"
        if tag == "td":
            self.tables[-1][-1][1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

    @property
    def results(self):
        """The rows of the tables of results: of those behind torch, and of the others."""
        rows = ([row for row in table if "data-verdict" in row[0]] for table in self.tables)
        return [table for table in rows if table]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The page of one GPU."""
    out = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["report", "--records", str(measured.RESULTS / "h200"), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def page(path):
    return Page(path.read_text())


def fastest():
    """(what, package, us, ratio to torch, environment) of each case in the repository's records, by plain arithmetic.

    What: the operation and the case, or the family of a random shape.
    """
    suites, sweep, folder = {}, {}, measured.RESULTS / "h200"
    files = [json.loads(lzma.decompress(file.read_bytes())) for file in folder.glob("*.json.xz")]
    files = [file for file in files if "median_ms" in file["records"][0]]
    for file in sorted(files, key=lambda file: file["environments"][0]["date"]):
        cases = {}
        for r in file["records"]:
            if r["ok"] and r["median_ms"] is not None:
                r["of"] = file["environments"][r["environment"]]
                cases.setdefault((r["suite"], r["op"], r["case"]), []).append(r)
        suites |= {case: rows for case, rows in cases.items() if any(r["implementation"] != "torch" for r in rows)}
    for (_, op, name), rows in suites.items():
        mine = [r for r in rows if r["implementation"] != "torch"]
        fair = yardstick(mine[0]["precision"])
        torchs = [r["median_ms"] for r in rows if r["implementation"] == "torch" and r["precision"] == fair]
        for implementation in {r["implementation"] for r in mine} if torchs else ():  # the page has what torch computes, too
            best = min((r for r in mine if r["implementation"] == implementation), key=lambda r: r["median_ms"])
            yield f"{op} {name}", PACKAGES[implementation], best["median_ms"], min(torchs) / best["median_ms"], best["of"]
    for row in map(json.loads, lzma.decompress((folder / "sweep.jsonl.xz").read_bytes()).splitlines()):
        if "op" not in row:
            environment = row["environment"]
        else:
            sweep[json.dumps([row["op"], row["problem"]], sort_keys=True), row["package"]] = row | {"of": environment}
    for row in sweep.values():
        if row["times"]:
            best = min(time[2] for time in row["times"]) / 1e3
            ratio = row["torch"][1] / 1e3 / best if row["torch"] else None  # in ms, as on the page: ties are rounded alike
            yield f"random shapes: {row['family']}", PACKAGES[row["package"]], best, ratio, row["of"]


def test_each_gpu_has_a_part_of_the_page(tmp_path):
    out, names = tmp_path / "report.html", [folder.name for folder in measured.gpus()]
    for folder in measured.gpus():  # some of their records, as all take half a minute, in examples/tour.ipynb
        (tmp_path / folder.name).mkdir()
        shutil.copy(folder / "square.json.xz", tmp_path / folder.name)
        lines = packed.read(folder / "sweep.jsonl.xz").splitlines(keepends=True)
        some = [line for line in lines if line.startswith(('{"environment"', '{"op":"gemm"'))]
        packed.write(tmp_path / folder.name / "gemm.jsonl", "".join(some))
    assert main(["report", "--records", str(tmp_path), "--out", str(out)]) == 0
    page = Page(out.read_text())
    assert not page.open and len(set(page.ids)) == len(page.ids) and set(names) <= set(page.ids)
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    assert len(page.results) == 2 * len(names) > 2


def test_it_is_one_file_that_loads_nothing(path, page):
    assert all(reference.startswith("#") for reference in page.references)
    assert not re.search(r"https?://|@import|url\((?!#)", path.read_text())
    assert not page.tags.keys() & {"link", "iframe", "object", "embed", "img", "base"}


def test_its_tags_are_balanced_and_each_link_leads_somewhere(page):
    assert not page.open
    assert not [name for name, count in Counter(page.ids).items() if count > 1]
    assert {reference[1:] for reference in page.references} <= set(page.ids)


def test_every_number_is_that_of_the_records_and_says_where_it_comes_from(page):
    origins = {attributes["id"]: cells for attributes, cells in page.tables[-1] if "id" in attributes}
    told = Counter()
    for attributes, (ratio, case, _, ms, _, origin) in (row for table in page.results for row in table):
        name, group = case.split("\n")
        what = group if group.startswith("random") else name
        told[(what, attributes["data-package"], ms.split("\n")[0], ratio, *origins[f"h200/origin/{origin}"][1:7])] += 1
    names = ("device", "date", "commit", "torch", "triton", "cuda")
    expected = Counter(
        (what, package, measured.us(ms), "-" if ratio is None else f"{ratio:.2f}", *(environment[name] for name in names))
        for what, package, ms, ratio, environment in fastest()
    )
    assert told == expected and expected.total() > 1000


def test_every_loss_is_listed_the_worst_first(page):
    behind, others = ([cells[0] for _, cells in table] for table in page.results)
    ratios = [ratio for *_, ratio, _ in fastest()]
    assert behind == [f"{ratio:.2f}" for ratio in sorted(ratio for ratio in ratios if ratio and ratio < 1)]
    assert len(others) == len(ratios) - len(behind)


def test_each_cell_of_the_heat_maps_is_a_row(path, page):
    cells = re.findall(r'<a href="#([^"]*)" class="(?:x\d|none)"', path.read_text())
    assert Counter(cells) == Counter(attributes["id"] for table in page.results for attributes, _ in table)


def text_of(html):
    return unescape(re.sub("<[^>]*>", "", html))


def test_each_design_has_its_sources_and_its_hot_loops(path):
    rows = records.read_rows(measured.RESULTS / "h200/code.json")
    loops = {(row["op"], row["design"], row["implementation"]): row["listing"] for row in rows if "fault" not in row}
    shown = re.findall(r'<details class="sources" id="code/(\w+)\.(\w+)">(.*?)</details>', path.read_text(), re.DOTALL)
    assert {(op, design) for op, design, _ in shown} == {(op, rung.name) for op in OPS for rung in LIBRARY.operation(op).own}
    for op, design, html in shown:
        panes = [text_of(pane) for pane in re.findall(r'<pre class="code" tabindex="0">(.*?)</pre>', html, re.DOTALL)]
        files = [ROOT / f"tritonkernels/{op}/{design}.py", ROOT / f"cuda_reference/{op}/{design}.cuh"]
        files = [file.read_text().strip() for file in files if file.exists()]
        assert [pane.strip() for pane in panes[: len(files)]] == files
        expected = [loops[op, design, package] for package in ("triton", "cuda") if (op, design, package) in loops]
        assert [pane.split("\n\n", 1)[1].splitlines() for pane in panes[len(files) :]] == expected


def test_machine_code_facts_are_those_of_the_records(page):
    (table,) = (table for table in page.tables if any(cells and cells[0].endswith("Triton") for _, cells in table))
    shown = Counter((cells[0].strip(), cells[1], cells[2], cells[5], cells[6]) for _, cells in table if cells)
    rows = [row for row in records.read_rows(measured.RESULTS / "h200/code.json") if "fault" not in row]
    assert shown == Counter(
        (
            f"{row['op']} {row['design']}\n{PACKAGES[row['implementation']]}",
            *(str(row[name]) for name in ("registers", "stack_bytes", "hot_loop_instructions")),
            f"{100 * row['math_share']:.0f} %",
        )
        for row in rows
    )


def test_instructions_are_coloured_by_what_they_do():
    lines = [
        "0010  @!P0 FFMA R1, R1, R2, R3",
        "           FFMA ... 5 more",
        "0080       LDGSTS.E [R1], [R2]",
        "0090       DEPBAR SB0",
    ]
    from perf.render.report import highlight  # which needs pygments

    html = highlight.listing(lines)
    assert text_of(html).splitlines() == lines
    assert re.findall(r'class="k k-(\w+)">([\w.]+)', html) == [("Math", "FFMA"), ("Memory", "LDGSTS.E"), ("Wait", "DEPBAR")]


def test_each_kind_of_instruction_has_its_share():
    loop = {"HMMA": 5, "LDSM.4": 2, "LDGSTS.E": 1, "STL": 1, "BRA": 1}
    code = gather.Code("matmul", "Triton", "tiled", {"hot_loop": loop, "hot_loop_instructions": 10}, 1)
    assert code.mix == pytest.approx({"math": 0.5, "shared": 0.2, "global": 0.2, "other": 0.1})


def some(tmp_path, keep, device="NVIDIA H200"):
    """A folder with those records of the ladder that `keep` says."""
    file = json.loads(packed.read(measured.RESULTS / "h200/ladder.json"))
    file["environments"][0]["device"] = device
    file["records"] = [row | {"target": device} for row in file["records"] if keep(row)]
    (tmp_path / "some.json").write_text(json.dumps(file))
    return tmp_path


@pytest.mark.parametrize("device", ["NVIDIA H200", "a GPU of tomorrow"])
def test_a_few_records_of_any_gpu_make_a_page(tmp_path, device):
    folder = some(tmp_path, lambda row: row["case"] == "256x256x256" and row["implementation"] != "cuda", device)
    out = tmp_path / "report.html"
    assert main(["report", "--records", str(folder), "--out", str(out)]) == 0
    page = Page(out.read_text())
    assert sum(map(len, page.results)) == 1 and ("FLOP per byte of operands" in out.read_text()) == (device == "NVIDIA H200")
    assert "None in these records" in out.read_text() and "def tiled_kernel" in text_of(out.read_text())


def test_what_failed_is_named(tmp_path):
    def broken(row):
        row["ok"] = row["design"] != "naive"
        return row["case"] == "256x256x256"

    (gpu,) = gather.gpus(some(tmp_path, broken))
    assert [what for what, _ in gpu.missing] == [f"gemm 256x256x256, {package} naive" for package in ("triton", "cuda")]
    assert all("naive" not in own for case in gpu.cases for own in case.seconds.values())


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as status:
        main(["report", *map(str, arguments)])
    assert status.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "prepare, message",
    [
        (lambda folder: None, "no timed records in {}"),
        (lambda folder: (folder / "seeds.json").write_text('{"environments": [], "records": []}'), "no timed records in {}"),
        (lambda folder: (folder / "seeds.json").write_text("{"), "cannot read the records in {}"),
        (lambda folder: folder.rmdir(), "no timed records in {}: `python -m perf compare --json"),
    ],
)
def test_without_records_it_says_so(tmp_path, capsys, prepare, message):
    folder = tmp_path / "records"
    folder.mkdir()
    prepare(folder)
    assert message.format(folder) in refusal(capsys, "--records", folder, "--out", tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_file_that_cannot_be_written_is_told_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gather, "gpus", lambda root: pytest.fail("work was done"))
    assert "cannot write" in refusal(capsys, "--out", tmp_path / "missing/report.html")
    assert "cannot write" in refusal(capsys, "--out", tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "permission denied" in refusal(capsys, "--out", tmp_path / "report.html")


def test_a_missing_package_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "NEEDED", ("jinja2", "no_such_package"))
    message = refusal(capsys, "--out", tmp_path / "report.html")
    assert "needs no_such_package: pip install 'tritonkernels[report]'" in message


@pytest.fixture
def browse(path, tmp_path):
    """browse(fragment, *options, file=the report) -> what Chromium prints, without an error in its console."""
    if not CHROMIUM:
        pytest.skip("chromium is not installed")

    def run(fragment="", *options, file=path):
        quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
        always = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", *quiet, "--enable-logging=stderr")
        where = f"--user-data-dir={tmp_path / 'profile'}", f"file://{file}{fragment}"
        done = subprocess.run([CHROMIUM, *always, *options, *where], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and "CONSOLE" not in done.stderr, done.stderr
        return done.stdout

    return run


def test_the_browser_opens_the_code_that_a_link_leads_to(browse):
    assert re.findall(r'<details [^>]*id="([^"]*)" open', browse("#code/gemm.tiled", "--dump-dom")) == ["code/gemm.tiled"]


@pytest.mark.parametrize("width", [360, 820])
def test_the_page_is_as_wide_as_a_phone_or_a_tablet(browse, path, tmp_path, width):
    frame = tmp_path / "frame.html"
    told = "this.title = contentDocument.documentElement.scrollWidth"
    frame.write_text(f'<iframe width="{width}" height="800" style="border: 0" src="file://{path}" onload="{told}"></iframe>')
    shown = browse(
        "", "--hide-scrollbars", "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom", file=frame
    )
    assert f'title="{width}"' in shown


def visible(text):
    return [[(a, cells) for a, cells in table if "hidden" not in a] for table in Page(text).results]


def test_the_browser_sorts_and_filters(browse, page):
    behind, others = visible(browse("#op=gemm&package=CUDA&q=long%20k&sort=3", "--dump-dom"))
    assert behind and others
    for table, all_of_it in zip((behind, others), page.results):
        cuda = [row for row in all_of_it if (row[0]["data-op"], row[0]["data-package"]) == ("gemm", "CUDA")]
        wanted = [a["id"] for a, cells in cuda if "long K" in cells[1]]
        assert sorted(wanted) == sorted(a["id"] for a, _ in table)
        times = [float(cells[3].split("\n")[0]) for _, cells in table]
        assert times == sorted(times) and len(times) == len(wanted)


def test_the_browser_filters_machine_code_too(browse):
    rows = [a for table in Page(browse("#op=gemm&package=CUDA", "--dump-dom")).tables for a, _ in table]
    rows = [a for a in rows if "data-op" in a and "data-verdict" not in a]
    shown = {(a["data-op"], a["data-package"]) for a in rows if "hidden" not in a}
    assert shown == {("gemm", "CUDA")} and any("hidden" in a for a in rows)


def test_the_browser_shows_all_without_a_filter_and_sorts_words(browse, page):
    tables = visible(browse("#sort=2", "--dump-dom"))
    assert [len(table) for table in tables] == [len(table) for table in page.results]
    for table in tables:
        designs = [cells[2].split("\n")[0] for _, cells in table]
        assert designs[0] == min(designs) and designs[-1] == max(designs)


def test_the_browser_prints_it(browse, tmp_path):
    browse("", f"--print-to-pdf={tmp_path / 'report.pdf'}")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
