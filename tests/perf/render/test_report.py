"""The report: light pages that load nothing, complete, with the records' numbers; it says at once where it cannot be made."""

import dataclasses
import json
import lzma
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from perf import ROOT
from perf.__main__ import main
from perf.measure import measured, packed, records
from perf.measure.baselines import yardstick
from perf.measure.classes import CLASSES, SUITE
from perf.measure.models.one import FORWARD, GRAPH, Row
from perf.render.report import command, gather
from perf.show import table
from tritonkernels import OPS

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

LOADS = {"src", "href", "action", "data", "poster"}
VOID = {"meta", "input", "br"}
PACKAGES = {"triton": "Triton", "cuda": "CUDA", "tritonkernels": "Triton", "cuda_reference": "CUDA"}
CHROMIUM = shutil.which("chromium")
GPUS = [folder.name for folder in measured.gpus()]
LARGEST = 3_000_000  # bytes of a page
MOST = 6_000  # elements of a page, before its script draws dots and the first rows of tables
DRAWN = 10_000  # with these


class Page(HTMLParser):
    """Its tags, ids, references, the texts of the rows of its tables by id or number, and its data."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.references, self.rows, self.data = [], Counter(), [], [], {}, None
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
        self.is_data = attributes.get("id") == "data"
        if tag == "tr":
            self.row = self.rows.setdefault(attributes.get("id", len(self.rows)), [])
        elif tag in ("td", "th"):
            self.row.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and self.is_data:
            self.data = json.loads(data)
        elif "td" in self.open or "th" in self.open:
            self.row[-1] += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The report of all records."""
    out = tmp_path_factory.mktemp("report") / "report"
    assert main(["report", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def pages(folder):
    """{name: Page}"""
    return {path.stem: Page(path.read_text()) for path in folder.glob("*.html")}


@pytest.fixture(scope="module")
def of_ops(pages):
    """{operation: Page}"""
    return {op: pages[op] for op in OPS if op in pages}


def fastest(folder):
    """(what, package, us, ratio to torch, environment) of each case in the records, by plain arithmetic.

    What: the operation and the case; random shapes have no names of their own. The classes are on a page of their own.
    """
    suites, sweep = {}, {}
    files = [json.loads(lzma.decompress(file.read_bytes())) for file in folder.glob("*.json.xz")]
    files = [file for file in files if "median_ms" in file["records"][0] and file["records"][0]["suite"] != "classes"]
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
            yield "random shapes", PACKAGES[row["package"]], best, ratio, row["of"]


def test_there_is_a_page_for_each_operation(pages):
    assert set(pages) == {"index", "origins", *OPS}


def test_pages_are_light(folder, pages):
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert max(sizes.values()) < LARGEST and sum(sizes.values()) < 2 * LARGEST
    assert max(page.tags.total() for page in pages.values()) < MOST


def test_they_load_nothing(folder):
    for path in folder.iterdir():
        text = path.read_text()
        assert not re.search(r"https?://|@import|url\((?!#)", text), path
        assert not Page(text).tags.keys() & {"link", "iframe", "object", "embed", "img", "base"}


def test_their_tags_are_balanced_and_each_link_leads_somewhere(folder, pages):
    for name, page in pages.items():
        assert not page.open
        assert not [id_ for id_, count in Counter(page.ids).items() if count > 1]
        for reference in page.references:
            file, _, fragment = reference.partition("#")
            if file.endswith(".md"):
                assert (folder / file).resolve() == ROOT / "docs/measuring.md" and name == "index"
                continue
            other = pages[Path(file).stem] if file else page
            assert "=" in fragment or fragment in ("", *other.ids), f"{name}: {reference}"


def shown_on(page):
    """(GPU, group, case, package, us, ratio to torch, origin) of each result in a page's data, in their order."""
    data = page.data
    for number, package, _, us, ratio, _, origin, *_ in data["results"]:
        gpu, group, _, name, *_ = data["cases"][number]
        yield data["gpus"][gpu], data["groups"][group], name, data["packages"][package], us, ratio, origin


@pytest.mark.parametrize("gpu", GPUS)
def test_every_number_is_that_of_the_records_and_says_where_it_comes_from(pages, of_ops, gpu):
    found = Counter(
        (
            "random shapes" if group.startswith("random") else f"{op} {name}",
            package,
            us,
            ratio,
            *pages["origins"].rows[f"{gpu}/{origin}"][1:7],
        )
        for op, page in of_ops.items()
        for own, group, name, package, us, ratio, origin in shown_on(page)
        if own == gpu
    )
    names = ("device", "date", "commit", "torch", "triton", "cuda")
    expected = Counter(
        (what, package, float(table.us(ms)), ratio and round(ratio, 2), *(str(environment[name]) for name in names))
        for what, package, ms, ratio, environment in fastest(measured.RESULTS / gpu)
    )
    assert found == expected and expected.total() > 1000


def test_results_begin_with_the_slowest_beside_torch(of_ops):
    for page in of_ops.values():
        ratios = [ratio for *_, ratio, _ in shown_on(page)]
        known = [ratio for ratio in ratios if ratio is not None]
        assert known == sorted(known) and ratios[: len(known)] == known


def test_a_verdict_is_that_of_the_times(of_ops):
    """By the spreads where there are some; a case may be even, or round to a ratio of 1."""
    expected = {-1: {"behind", "even"}, 0: {"behind", "even", "ahead"}, 1: {"ahead", "even"}}
    for page in of_ops.values():
        for _, _, _, _, ratio, verdict, *_ in page.data["results"]:
            allowed = {"alone"} if ratio is None else expected[(ratio > 1) - (ratio < 1)]
            assert page.data["verdicts"][verdict] in allowed


def test_commits_are_on_the_page_of_origins_alone(folder):
    assert [path.name for path in folder.iterdir() if "commit" in path.read_text()] == ["origins.html"]


@pytest.mark.parametrize("gpu", GPUS)
def test_machine_code_facts_are_those_of_the_records(of_ops, gpu):
    fields = ("registers", "stack", "shared", "loop", "math")
    shown = Counter(
        (op, code["design"], page.data["packages"][code["package"]], *(code[name] for name in fields))
        for op, page in of_ops.items()
        for code in page.data["codes"]
        if page.data["gpus"][code["gpu"]] == gpu
    )
    names = ("registers", "stack_bytes", "shared_bytes", "hot_loop_instructions")
    rows = [row for row in records.read_rows(measured.RESULTS / gpu / "code.json") if "fault" not in row]
    assert shown == Counter(
        (
            row["op"],
            row["design"],
            PACKAGES[row["implementation"]],
            *(row[name] for name in names),
            round(100 * row["math_share"]),
        )
        for row in rows
    )


def test_a_ladder_has_every_design_of_its_case(pages):
    case = next(case for case in measured.suites(measured.RESULTS / "h200")["ladder"] if case.name == "4096x4096x4096")
    rows = [cells for cells in pages["gemm"].rows.values() if len(cells) == 3]
    for design in {r.design for r in case.designs}:
        speeds = "".join(f"{r.ratio_to_torch:.2f}" for r in case.designs if r.design == design)
        assert [design, "", speeds] in rows


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
def test_a_few_records_of_any_gpu_make_pages(tmp_path, device):
    folder = some(tmp_path, lambda row: row["case"] == "256x256x256" and row["implementation"] != "cuda", device)
    assert main(["report", "--records", str(folder), "--out", str(tmp_path / "report")]) == 0
    text = (tmp_path / "report/gemm.html").read_text()
    assert len(Page(text).data["results"]) == 1 and ('class="roofline"' in text) == (device == "NVIDIA H200")
    assert "None in these records" in text and "naive" in text


def test_designs_link_to_the_twin_pages_that_are_there(tmp_path):
    folder = some(tmp_path, lambda row: row["case"] == "256x256x256")
    for twins in (tmp_path / "twins/gemm", tmp_path / "elsewhere/gemm"):
        twins.mkdir(parents=True)
        (twins / "tiled.html").touch()
    for options, address in (
        ((), "../twins/gemm/tiled.html"),
        (["--twins", tmp_path / "elsewhere"], "../elsewhere/gemm/tiled.html"),
    ):
        assert main(["report", "--records", str(folder), "--out", str(tmp_path / "report"), *map(str, options)]) == 0
        page = Page((tmp_path / "report/gemm.html").read_text())
        assert {reference for reference in page.references if "/" in reference} == {address}


def of_class(case, ratio, implementation, **other):
    """The rows of torch and of a package in a case of a class, made from a row of the ladder."""
    row = records.read_json(measured.RESULTS / "h200/ladder.json")[0]
    row = dataclasses.replace(row, suite=SUITE, case=case, ok=True, message=None, ratio_to_torch=None)
    yield dataclasses.replace(
        row, implementation="torch", design="addmm", median_ms=1.0, p20_ms=0.99, p80_ms=1.01, kernels=["sgemm"]
    )
    times = dict.fromkeys(("median_ms", "p20_ms", "p80_ms"), 1 / ratio)
    yield dataclasses.replace(row, implementation=implementation, ratio_to_torch=ratio, **times | other)


def test_the_index_begins_with_the_classes(tmp_path):
    first, second = list(CLASSES.values())[:2]
    cases = [
        *of_class(f"{first.name}: one", 0.5, "triton"),
        *of_class(f"{first.name}: two", 2.0, "triton"),
        *of_class(f"{second.name}: three", 1.25, "cuda"),
        *of_class(f"{second.name}: four", 1.0, "cuda", ok=False, message="wrong"),
    ]
    records.write_json(tmp_path / "classes.json", cases)
    assert main(["report", "--records", str(tmp_path), "--out", str(tmp_path / "report")]) == 0
    text = (tmp_path / "report/index.html").read_text()
    page = Page(text)
    assert [row[0] for row in page.rows.values() if row[0] in CLASSES] == [first.name, second.name]
    assert page.data["goals"] == [first.worst, second.worst]
    assert [row[1:6] for row in shown_on(page)] == [
        (first.name, f"{first.name}: one", "Triton", 2000, 0.5),
        (second.name, f"{second.name}: three", "CUDA", 800, 1.25),
        (first.name, f"{first.name}: two", "Triton", 500, 2.0),
    ]
    assert "Without a time: 1" in text and "four, CUDA naive: wrong" in text and "by addmm, sgemm" in text


def test_models_come_before_the_classes(tmp_path):
    environment = records.read_json(measured.RESULTS / "h200/ladder.json")[0].environment
    times = {whose: {GRAPH: {"median_us": us}} for whose, us in (("torch", 900.0), ("triton", 720.0))}
    errors = {"torch": 1e-3, "triton": 1e-3}
    whole = Row("vit", "ViT-S", "bf16", "64x3x224x224", FORWARD, 50, {"triton": 49}, times=times, error=errors, ok=True)
    lost = Row("bert", "BERT", "bf16", "32x512", message="transformers is not installed")
    records.write_json(tmp_path / "models.json", [dataclasses.replace(row, environment=environment) for row in (whole, lost)])
    assert main(["report", "--records", str(tmp_path), "--out", str(tmp_path / "report")]) == 0
    text = (tmp_path / "report/index.html").read_text()
    row = next(row for row in Page(text).rows.values() if row[0] == "ViT-S")
    assert row[4:7] == ["49 of 50", "1.25", "-"]
    assert "Not run: BERT, bf16, 32x512: transformers is not installed" in text and "<svg" in text
    assert text.index('id="models"') < text.index('id="classes"') < text.index('id="operations"')


def test_what_failed_is_named(tmp_path):
    def broken(row):
        row["ok"] = row["design"] != "naive"
        return row["case"] == "256x256x256"

    (gpu,) = gather.gpus(some(tmp_path, broken))
    assert [what for what, _ in gpu.missing] == [f"gemm 256x256x256, {package} naive" for package in ("triton", "cuda")]
    assert all(r.design != "naive" for case in gpu.cases for r in case.results.values())


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
    assert message.format(folder) in refusal(capsys, "--records", folder, "--out", tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_folder_that_cannot_be_written_is_named_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gather, "gpus", lambda root: pytest.fail("work was done"))
    (tmp_path / "file").touch()
    assert "is no folder" in refusal(capsys, "--out", tmp_path / "file")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "permission denied" in refusal(capsys, "--out", tmp_path / "report")


def test_a_missing_package_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "NEEDED", ("jinja2", "no_such_package"))
    message = refusal(capsys, "--out", tmp_path / "report")
    assert "needs no_such_package: pip install 'tritonkernels[report]'" in message


@pytest.fixture
def browse(folder, tmp_path):
    """browse(address in the report, or a file) -> the page's elements as Chromium has them, without an error in its console."""
    if not CHROMIUM:
        pytest.skip("chromium is not installed")

    def run(address):
        quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
        always = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", *quiet, "--enable-logging=stderr")
        files = ("--allow-file-access-from-files", "--hide-scrollbars", f"--user-data-dir={tmp_path / 'profile'}")
        command = [CHROMIUM, *always, *files, "--virtual-time-budget=30000", "--dump-dom", f"file://{folder / address}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and "CONSOLE" not in done.stderr, done.stderr
        return done.stdout

    return run


def test_no_page_is_wider_than_its_window_nor_a_chart_higher(browse, folder, tmp_path):
    """At the widths of a phone, a tablet and a desktop, in windows 900 pixels high."""
    measure = """const measure = (frame) => {
      const own = frame.contentDocument;
      const charts = [...own.querySelectorAll(".strips, .roofline, .ladder, .figure")];
      const highest = Math.max(0, ...charts.map((box) => box.getBoundingClientRect().height));
      frame.title = `${own.documentElement.scrollWidth} ${highest <= 900}`;
    };"""
    pages = [f"{page}.html" for page in ("index", "matmul", "origins")]
    frames = [
        f'<iframe width="{width}" height="900" src="{folder / page}" onload="measure(this)"></iframe>'
        for page in pages
        for width in (390, 1100, 1600)
    ]
    frame = tmp_path / "frames.html"
    frame.write_text(f"<style>iframe {{ border: 0 }}</style><script>{measure}</script>{''.join(frames)}")
    shown = re.findall(r'<iframe width="(\d+)".*?title="(\d+) (\w+)"', browse(frame))
    assert len(shown) == len(frames) and all((width, "true") == (own, fits) for width, own, fits in shown), shown


def test_the_script_filters_sorts_and_draws(browse, of_ops):
    page = of_ops["matmul"]
    shown = browse("matmul.html#gpu=h200&package=CUDA&q=long%20k&sort=-4")
    drawn = Page(shown)
    own = [
        (us, name)
        for gpu, group, name, package, us, *_ in shown_on(page)
        if (gpu, package) == ("h200", "CUDA") and "long K" in group
    ]
    rows = [cells for cells in drawn.rows.values() if len(cells) == 7][1:]
    assert len(rows) == min(100, len(own)) and f"{len(own)} of {len(page.data['results'])} results" in shown
    times = [float(cells[3].split("\u2013")[0]) for cells in rows if "\u2013" not in cells[3]]
    assert times == sorted(times, reverse=True) and times[0] == max(us for us, _ in own)
    assert set(re.findall(r'class="dots (\w+)" d="M', shown)) == {"cuda"}
    code = [cells for cells in drawn.rows.values() if len(cells) == 13][1:]
    assert code and all("CUDA" in cells[0] for cells in code)


def test_the_script_adds_few_elements(browse):
    """All dots of a row are one path, and a hundred rows of a table are in the document."""
    drawn = Page(browse("matmul.html"))
    assert drawn.tags.total() < DRAWN
