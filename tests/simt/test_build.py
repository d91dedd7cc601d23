"""The build of kernels: cached by all its inputs, with a clear error for every fault. Its cache: tests/concurrency."""

import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from cuda_reference import build, child, recipes, toolchain
from tests import children
from tests.harness import short, thorough
from tritonkernels import cache as cache_module
from tritonkernels.errors import BuildError, ToolchainError

SOURCE = Path(__file__).parent / "kernels/tiny.cuh"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def fresh(monkeypatch):
    """Forget this process's modules, as in a new process."""
    monkeypatch.setattr(build, "_kernels", {})
    monkeypatch.setattr(build, "_parts", {})


@pytest.fixture
def cache(tmp_path, monkeypatch, fresh):
    monkeypatch.setenv("TRITONKERNELS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def load(n=1):
    return build.load(SOURCE, [f"tiny::fill<{n}>"], "simt")[f"tiny::fill<{n}>"]


def works(kernel, n=1):
    out = torch.zeros(4, dtype=torch.int32)
    kernel((1, 1, 1), (4, 1, 1), 0, 0, out.data_ptr())
    return out.tolist() == [n] * 4


def test_importing_costs_nothing():
    code = "import sys, cuda_reference.build; sys.exit('torch.utils.cpp_extension' in sys.modules)"
    assert children.run("-c", code).returncode == 0


def test_a_second_load_builds_nothing(fresh, monkeypatch):
    assert works(load())
    monkeypatch.setattr(build, "_kernels", {})
    monkeypatch.setattr(build, "_compile", None)
    assert works(load())
    monkeypatch.setattr(build, "_load", None)
    assert load() is load(), "in one process it is a lookup"


def test_a_build_that_takes_too_long_is_killed(cache, monkeypatch):
    monkeypatch.setenv("TRITONKERNELS_BUILD_TIMEOUT", "0.3")
    with pytest.raises(BuildError, match=r"took more than 0.3 s: raise TRITONKERNELS_BUILD_TIMEOUT"):
        load(4)
    assert not list(cache.glob(".building-*"))


def test_a_build_that_is_ended_ends_what_its_compiler_runs_and_starts_nothing_more(tmp_path):
    """Whoever waits for it waits for all that could write to its output. Its folder holds its temporary files."""
    running, after = tmp_path / "running", tmp_path / "after"
    commands = [["sh", "-c", "(sleep 60) & touch $TMPDIR/running; wait"], ["touch", str(after)]]
    recipe = recipes.Recipe("of_a_test", "cuda", "", ())
    with ThreadPoolExecutor() as pool:
        build_under_way = pool.submit(child.run, recipe, commands, tmp_path, 60)
        while not running.exists():
            time.sleep(0.01)
        build.stop()
        with pytest.raises(BuildError, match="failed"):
            build_under_way.result(20)
    assert not after.exists()
    with pytest.raises(BuildError, match="was interrupted"):  # since it was asked for before
        child.run(recipe, commands, tmp_path, 60)


def test_a_waiting_process_gives_up(cache, monkeypatch):
    monkeypatch.setenv("TRITONKERNELS_BUILD_TIMEOUT", "0.2")
    recipe = recipes.module(SOURCE, ("tiny::fill<4>",), "simt")
    with cache_module.locked(recipe.name, 0), pytest.raises(BuildError, match="another process"):
        load(4)


def test_a_compile_error_is_quoted_and_followed_by_what_to_do(fresh):
    with pytest.raises(BuildError, match=r"(?s)failed.*'nothing' is not a member of 'tiny'.*\n.*doctor\(\).*CXX.*CUDA_HOME"):
        build.load(SOURCE, ["tiny::nothing"], "simt")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("CXX", "/nonexistent/g++", "no C\\+\\+ compiler '/nonexistent/g\\+\\+': install g\\+\\+ 9 or newer"),
        ("CXX", "false", "false .* fails"),
        ("TRITONKERNELS_BUILD_TIMEOUT", "soon", "got 'soon'; allowed: a number of seconds"),
        ("TRITONKERNELS_SANITIZE", "thread", "got 'thread'; allowed: 'address'"),
        ("TRITONKERNELS_CACHE", "/proc/nowhere", "Set TRITONKERNELS_CACHE to a folder of your own"),
    ],
)
def test_environments_that_cannot_build(cache, monkeypatch, name, value, text):
    monkeypatch.setenv(name, value)
    with pytest.raises(BuildError, match=text):
        load(5)


def test_an_old_compiler(cache, monkeypatch):
    monkeypatch.setenv("CXX", "true")  # one that was not asked before
    monkeypatch.setattr(toolchain, "output", lambda command: "#define __GNUC__ 7\n")
    with pytest.raises(ToolchainError, match=r"is g\+\+ 7: install g\+\+ 9 or newer"):
        load(5)


def test_cuda_without_a_gpu(cache):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ToolchainError, match=r"without CUDA|no CUDA GPU"):
        build.load(SOURCE, ["tiny::fill<1>"], "cuda")


def test_a_missing_nvcc_and_one_too_old(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(ToolchainError, match="set CUDA_HOME"):
        toolchain.nvcc("90a")
    nvcc = tmp_path / "bin/nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\necho compute_75\n")
    nvcc.chmod(0o755)
    assert toolchain.nvcc("75")
    with pytest.raises(ToolchainError, match="cannot compile for this GPU \\(sm_90a\\)"):
        toolchain.nvcc("90a")


def test_the_name_follows_every_input(cache, monkeypatch, tmp_path):
    header, other = tmp_path / "kernel.cuh", tmp_path / "other.cuh"
    header.write_text('#include "other.cuh"\n')

    def name(expression="f"):
        return recipes.module(header, (expression,), "simt").name

    other.write_text("")
    names = [name(), name(), name("g")]
    other.write_text("//")
    names.append(name())
    monkeypatch.setattr(torch, "__version__", "0")
    names.append(name())
    monkeypatch.setenv("TRITONKERNELS_SANITIZE", "address")
    names.append(name())
    assert names[0] == names[1] and len(set(names)) == 5


@pytest.mark.parametrize(
    ("backend", "changed"),
    [("simt", "simt/block.cpp"), ("simt", "simt/warp.h"), ("simt", "common/encode.cuh"), ("cuda", "common/encode.cuh")],
)
def test_names_follow_what_modules_are_linked_with(cache, monkeypatch, tmp_path, backend, changed):
    monkeypatch.setattr(recipes, "ROOT", shutil.copytree(recipes.ROOT, tmp_path / "package"))
    monkeypatch.setattr(toolchain, "flags", lambda backend: (["-arch=sm_90a"], ["13.0"]))

    def names():
        return {recipes.runtime(backend).name, recipes.module(SOURCE, ("tiny::fill<1>",), backend).name}

    before = names()
    assert names() == before
    with open(recipes.ROOT / changed, "a") as file:
        file.write("//")
    assert len(names() | before) == 4


@short(lambda backend: backend == "simt")
@pytest.mark.parametrize("backend", ["simt", "trace"])
def test_checkouts_share_their_builds_but_no_precompiled_headers(backend, tmp_path):
    """Debug information would name the lines of such headers in the other checkout."""
    shutil.copytree(recipes.ROOT, tmp_path / "cuda_reference", ignore=shutil.ignore_patterns("__pycache__"))
    outside = SOURCE.relative_to(ROOT)  # a kernel that is not the package's
    (tmp_path / outside).parent.mkdir(parents=True)
    shutil.copy(SOURCE, tmp_path / outside)
    kernels = {"'gemm/naive.cuh'": "gemm::naive<16>", f"os.path.abspath({str(outside)!r})": "tiny::fill<1>"}
    modules = (f"recipes.module({header}, ({kernel!r},), {backend!r})" for header, kernel in kernels.items())
    shared = ", ".join((f"recipes.runtime({backend!r})", *modules))
    names = f"*(recipe.name for recipe in ({shared}, recipes.headers({backend!r})))"
    place = "import os, sys; sys.path.insert(0, os.getcwd())"
    code = f"{place}; from cuda_reference import recipes; print(recipes.ROOT, {names})"
    answers = [children.run("-c", code, cwd=folder) for folder in (ROOT, tmp_path)]
    (here, *shared, headers), (there, *same, others) = (answer.stdout.split() for answer in answers)
    assert (here, there) == (str(ROOT / "cuda_reference"), str(tmp_path / "cuda_reference"))
    assert shared == same and len(shared) == 3 and headers != others


@pytest.mark.parametrize("backend", ["simt", "trace"])
def test_the_compiler_takes_the_precompiled_headers(backend, fresh, tmp_path):
    compile, _ = build._commands(recipes.module(SOURCE, ("tiny::fill<1>",), backend), tmp_path)
    done = subprocess.run([*compile, "-H"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"! {tmp_path}/headers.h.gch\n" in done.stderr and "stdlib.h" not in done.stderr, "g++ reads nothing else"


def test_modules_share_a_build_of_the_emulation_and_one_of_its_headers(cache, monkeypatch, tmp_path):
    built = []

    def compile(recipe, folder, timeout):
        built.append(recipe.name)
        (folder / f"{recipe.name}{recipe.suffix}").write_bytes(b"compiled")

    monkeypatch.setattr(build, "_compile", compile)
    shared = [recipes.runtime("simt"), recipes.headers("simt")]
    for i, (times, damaged) in enumerate(((1, False), (1, False), (2, True))):
        if damaged:
            for recipe in shared:
                (cache / recipe.name / f"{recipe.name}{recipe.suffix}").write_bytes(b"comp")
        folder = tmp_path / str(i)
        folder.mkdir()
        compile, link = build._commands(recipes.module(SOURCE, ("tiny::fill<1>",), "simt"), folder)
        assert built == [recipe.name for recipe in shared] * times
        for used, command in ("runtime.o", link), ("headers.h", compile):
            assert str(folder / used) in command
        assert {(folder / name).read_bytes() for name in ("runtime.o", "headers.h.gch")} == {b"compiled"}


def test_unknown_sources_and_backends(cache):
    with pytest.raises(BuildError, match="there is no kernel source"):
        build.load("gemm/nowhere.cuh", ["f"], "simt")
    with pytest.raises(ValueError, match="allowed: 'simt', 'cuda'"):
        build.load(SOURCE, ["f"], "cpu")


def test_doctor_never_raises(cache, monkeypatch):
    assert build.doctor()["simt"] == "ready"
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    monkeypatch.setenv("CUDA_HOME", "/nonexistent")
    answers = build.doctor()
    assert "no C++ compiler" in answers["simt"] and "install the CUDA toolkit" in answers["nvcc"]


@thorough
def test_nvcc_builds_the_same_sources(monkeypatch, fresh):
    """Without a GPU the module still links and loads, and a launch is an error with CUDA's name for it."""
    monkeypatch.setattr(toolchain, "gpu_architecture", lambda: "90a")
    try:
        toolchain.nvcc("90a")
    except ToolchainError as error:
        pytest.skip(str(error))
    threads = SOURCE.parent / "threads.cuh"
    expressions = ["threads::coordinates", "threads::dynamic", "threads::arguments"]
    kernel = build.load(threads, expressions, "cuda")["threads::coordinates"]
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="cudaError"):
            kernel((1, 1, 1), (32, 1, 1), 0, 0, 0)
    with pytest.raises(BuildError, match=r"(?s)failed.*threads.*nothing.*doctor\(\)"):
        build.load(threads, ["threads::nothing"], "cuda")
