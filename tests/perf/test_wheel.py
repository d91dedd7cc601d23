"""The installed package: what a wheel brings, and that its command works where there is no repository."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("tritonkernels", "cuda_reference", "perf", "pyproject.toml", "setup.py", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that a wheel of a copy of the sources is installed in: building leaves files beside them."""
    found = {package.name.lower(): package.version for package in distributions()}
    if "pip" not in found or int(found.get("setuptools", "0").partition(".")[0]) < 77:
        pytest.skip("a wheel is built by pip and setuptools >= 77")
    folder = tmp_path_factory.mktemp("wheel")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "copy" / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        else:
            shutil.copy(ROOT / name, folder / "copy" / name)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, folder / "copy"], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", folder / "site", wheel], check=True)
    return folder / "site"


@pytest.fixture
def run(installed, tmp_path):
    """run(arguments): the finished process of the installed `tritonkernels`, in an empty folder."""
    environment = os.environ | {"PYTHONPATH": str(installed)}

    def run(*arguments):
        command = [installed / "bin" / "tritonkernels", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)

    return run


def test_it_adds_no_module_of_a_common_name(installed):
    names = {path.name.partition("-")[0] for path in installed.iterdir()}
    assert names == {"tritonkernels", "cuda_reference", "tritonkernels_perf", "bin"}


def test_its_command_works(run, installed):
    said = run("doctor")
    assert said.returncode == 0 and "ninja" in said.stdout, said.stderr
    said = run("compare", "--help")
    assert "tritonkernels compare: every design" in said.stdout and "python -m perf" not in said.stdout


def test_the_report_is_made_from_the_user_s_records(run, tmp_path):
    for module in ("jinja2", "matplotlib"):
        pytest.importorskip(module)
    (tmp_path / "mine").mkdir()
    shutil.copy(ROOT / "perf/results/h200/gemv.json.xz", tmp_path / "mine")
    said = run("report", "--records", "mine")
    assert said.returncode == 0, said.stderr
    assert "rows_per_warp" in (tmp_path / "build/report/gemv.html").read_text()


def test_the_report_names_its_remedy_where_the_user_has_named_no_records(run):
    said = run("report")
    assert (said.returncode, said.stdout) == (2, "")
    error = said.stderr.splitlines()[-1]
    assert error.startswith("tritonkernels report: error: no timed records in ")
    assert "`tritonkernels compare --json DIR/FILE.json`" in error and "--records DIR" in error


def test_what_needs_the_repository_says_so(run):
    said = run("docs")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == "docs needs the repository: run `python -m perf docs` in it\n"
