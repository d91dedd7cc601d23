"""The installed package: what a wheel brings, that its command works where there is no repository, and that wheel and sdist
install into a new environment."""

import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distributions
from pathlib import Path

import pytest
import torch

from tests.harness import thorough

ROOT = Path(__file__).parents[2]
PARTS = ("tritonkernels", "cuda_reference", "perf", "pyproject.toml", "setup.py", "README.md", "LICENSE")


PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
# Called where there is no repository: operations of both packages on the CPU, and where they are from.
FIRST_CALLS = """
import sys, torch, tritonkernels, cuda_reference
a = torch.randn(20, 30)
for package in (tritonkernels, cuda_reference):
    torch.testing.assert_close(package.gemv(a, torch.ones(30)), a.sum(1))
    print(package.__file__)
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the sources: building leaves files among them."""
    found = {package.name.lower(): package.version for package in distributions()}
    if "pip" not in found or int(found.get("setuptools", "0").partition(".")[0]) < 77:
        pytest.skip("a wheel is built by pip and setuptools >= 77")
    folder = tmp_path_factory.mktemp("sources")
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(copied, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, copied], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def sdist(copied, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=copied, check=True, capture_output=True)
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


@pytest.fixture(scope="module")
def installed(wheel):
    """The folder that a wheel is installed in."""
    subprocess.run([*PIP, "install", "--no-deps", "--no-index", "--target", wheel.parent / "site", wheel], check=True)
    return wheel.parent / "site"


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


def test_it_says_that_it_is_typed(installed):
    assert all((installed / package / "py.typed").is_file() for package in ("tritonkernels", "cuda_reference"))


@thorough
@pytest.mark.parametrize("made", ("wheel", "sdist"))
def test_it_installs_into_a_new_environment(made, request, tmp_path):
    """One that has what it depends on and nothing of the repository. The first calls build what they need."""
    package = request.getfixturevalue(made)
    venv.create(tmp_path / "new")
    python = tmp_path / "new/bin/python"
    (site,) = (tmp_path / "new").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(str(Path(torch.__file__).parents[1]))  # no network is needed
    install = (*PIP, "--python", python, "install", "--no-deps", "--no-index", "--no-build-isolation", package)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "TRITON"))}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "TRITONKERNELS_CACHE": str(tmp_path / "cache")}
    subprocess.run(install, check=True, env=environment)
    calls = subprocess.run([python, "-c", FIRST_CALLS], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert calls.returncode == 0, calls.stderr
    assert [Path(file).parents[1] for file in calls.stdout.splitlines()] == 2 * [site]
    doctor = subprocess.run([tmp_path / "new/bin/tritonkernels", "doctor"], cwd=tmp_path, env=environment, capture_output=True)
    assert doctor.returncode == 0, doctor.stderr


@thorough
def test_its_command_works(run, installed):
    said = run("doctor")
    assert said.returncode == 0 and "c++ compiler" in said.stdout, said.stderr
    said = run("compare", "--help")
    assert "tritonkernels compare: every design" in said.stdout and "python -m perf" not in said.stdout


@thorough
def test_the_report_is_made_from_the_user_s_records(run, tmp_path):
    for module in ("jinja2", "matplotlib"):
        pytest.importorskip(module)
    (tmp_path / "mine").mkdir()
    shutil.copy(ROOT / "perf/results/h200/gemv.json.xz", tmp_path / "mine")
    said = run("report", "--records", "mine")
    assert said.returncode == 0, said.stderr
    assert "rows_per_warp" in (tmp_path / "build/report/gemv.html").read_text()


@thorough
def test_the_report_names_its_remedy_where_the_user_has_named_no_records(run):
    said = run("report")
    assert (said.returncode, said.stdout) == (2, "")
    error = said.stderr.splitlines()[-1]
    assert error.startswith("tritonkernels report: error: no timed records in ")
    assert "`tritonkernels compare --json DIR/FILE.json`" in error and "--records DIR" in error


@thorough
def test_what_needs_the_repository_says_so(run):
    said = run("docs")
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == "docs needs the repository: run `python -m perf docs` in it\n"
