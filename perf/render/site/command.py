"""python -m perf site: the docs as a web site: with search, the API, a page for each design and its twin, and the report.

It is built without a network from the Markdown of the repository, and can be opened from disk: DIR/index.html. Every link and
anchor is checked, and that a browser loads nothing from elsewhere.

Exit status: 1 for a link that leads nowhere, 2 where a package is missing.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ... import ROOT
from . import api, check, pages

SITE = ROOT / "build/site"
API = ROOT / "docs/api.md"  # made for the site only
HERE = Path(__file__).parent
ASSETS = ("iframe-worker.js", "site.css")


def add_arguments(parser):
    parser.add_argument(
        "--out", type=Path, default=SITE, metavar="DIR", help="an earlier site there is replaced; default: build/site"
    )


def main(options, parser):
    if importlib.util.find_spec("zensical") is None:
        parser.error("the site needs zensical: make docs-site installs it, or pip install 'tritonkernels[docs]'")
    if options.out.exists() and not (options.out / "search.json").exists():
        parser.error(f"{options.out} exists and is no site; it would be replaced")
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder))
        if options.out.exists():
            shutil.rmtree(options.out)
        shutil.copytree(built, options.out)
    wrong = list(check.problems(options.out))
    print("\n".join(wrong) or f"{options.out / 'index.html'}: every link leads somewhere")
    return 1 if wrong else 0


def build(folder):
    """Builds it in an empty folder, and returns the folder of the site in there."""
    pages.write(folder / "pages", {API: api.markdown()})
    _run("perf", "twins", "--out", folder / "pages/twins", "--docs", "../docs/{}.html")
    _run("perf", "report", "--out", folder / "pages/report", "--docs", "../docs/{}.html")
    (folder / "pages/assets").mkdir()
    for name in ASSETS:
        shutil.copy(HERE / name, folder / "pages/assets")
    config = shutil.copy(HERE / "zensical.toml", folder)
    _run("zensical", "build", "--strict", "--config-file", config)
    return folder / "site"


def _run(*command):
    """python -m of a command in the repository. Its output is shown if it fails."""
    run = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=ROOT)
    if run.returncode:
        sys.exit(f"{run.stdout}{run.stderr}{command[0]} failed")
