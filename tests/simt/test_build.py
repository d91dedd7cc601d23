"""The build of kernels: cached by all its inputs, with a clear error for every fault. Its cache: tests/concurrency."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

from cuda_reference import build, toolchain
from tests import children
from tests.harness import short
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


def test_a_build_that_is_ended_does_nothing_more():
    """Not even what would follow its compiler: to leave torch takes a second."""
    then = "signal.signal(signal.SIGTERM, end); print('started', flush=True); subprocess.call(['sleep', '60']); time.sleep(60)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", f"import time\n{build._CHILD}{then}"]
    with subprocess.Popen(command, start_new_session=True, **pipes) as child:
        child.stdin.write("{}")
        child.stdin.close()
        assert child.stdout.readline() == "started\n"
        child.terminate()
        try:
            assert child.wait(timeout=20) == 1
        finally:
            child.kill()


def test_a_waiting_process_gives_up(cache, monkeypatch):
    monkeypatch.setenv("TRITONKERNELS_BUILD_TIMEOUT", "0.2")
    recipe = build._recipe(SOURCE, ("tiny::fill<4>",), "simt")
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


def test_no_ninja(cache, monkeypatch):
    monkeypatch.setattr(toolchain, "path", lambda: "/nonexistent")
    with pytest.raises(ToolchainError, match="pip install ninja"):
        toolchain.ninja()


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
        return build._recipe(header, (expression,), "simt").name

    other.write_text("")
    names = [name(), name(), name("g")]
    other.write_text("//")
    names.append(name())
    monkeypatch.setattr(torch, "__version__", "0")
    names.append(name())
    monkeypatch.setenv("TRITONKERNELS_SANITIZE", "address")
    names.append(name())
    assert names[0] == names[1] and len(set(names)) == 5


@pytest.mark.parametrize("changed", ["simt/block.cpp", "simt/warp.h"])
def test_names_follow_the_emulation(cache, monkeypatch, tmp_path, changed):
    monkeypatch.setattr(build, "ROOT", shutil.copytree(build.ROOT, tmp_path / "package"))

    def names():
        return {build._runtime("simt").name, build._recipe(SOURCE, ("tiny::fill<1>",), "simt").name}

    before = names()
    assert names() == before
    with open(build.ROOT / changed, "a") as file:
        file.write("//")
    assert len(names() | before) == 4


@short(lambda backend: backend == "simt")
@pytest.mark.parametrize("backend", ["simt", "trace"])
def test_checkouts_share_their_builds_but_no_precompiled_headers(backend, tmp_path):
    """Debug information would name the lines of such headers in the other checkout."""
    shutil.copytree(build.ROOT, tmp_path / "cuda_reference", ignore=shutil.ignore_patterns("__pycache__"))
    outside = SOURCE.relative_to(ROOT)  # a kernel that is not the package's
    (tmp_path / outside).parent.mkdir(parents=True)
    shutil.copy(SOURCE, tmp_path / outside)
    kernels = {"'gemm/naive.cuh'": "gemm::naive<16>", f"os.path.abspath({str(outside)!r})": "tiny::fill<1>"}
    recipes = (f"build._recipe({header}, ({kernel!r},), {backend!r})" for header, kernel in kernels.items())
    shared = ", ".join((f"build._runtime({backend!r})", *recipes))
    names = f"*(recipe.name for recipe in ({shared}, build._headers({backend!r})))"
    code = f"import os; from cuda_reference import build; print(build.ROOT, {names})"
    answers = [
        subprocess.run([sys.executable, "-c", code], cwd=place, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True)
        for place in (ROOT, tmp_path)
    ]
    (here, *shared, headers), (there, *same, others) = (answer.stdout.decode().split() for answer in answers)
    assert (here, there) == (str(ROOT / "cuda_reference"), str(tmp_path / "cuda_reference"))
    assert shared == same and len(shared) == 3 and headers != others


@pytest.mark.parametrize("backend", ["simt", "trace"])
def test_the_compiler_takes_the_precompiled_headers(backend, fresh, tmp_path):
    compile, _ = build._commands(build._recipe(SOURCE, ("tiny::fill<1>",), backend), tmp_path)
    done = subprocess.run([*compile, "-H"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"! {tmp_path}/headers.h.gch\n" in done.stderr and "stdlib.h" not in done.stderr, "g++ reads nothing else"


def test_modules_share_a_build_of_the_emulation_and_one_of_its_headers(cache, monkeypatch, tmp_path):
    built = []

    def compile(recipe, folder, timeout):
        built.append(recipe.name)
        (folder / f"{recipe.name}{recipe.suffix}").write_bytes(b"compiled")

    monkeypatch.setattr(build, "_compile", compile)
    shared = [build._runtime("simt"), build._headers("simt")]
    for i, (times, damaged) in enumerate(((1, False), (1, False), (2, True))):
        if damaged:
            for recipe in shared:
                (cache / recipe.name / f"{recipe.name}{recipe.suffix}").write_bytes(b"comp")
        folder = tmp_path / str(i)
        folder.mkdir()
        compile, link = build._commands(build._recipe(SOURCE, ("tiny::fill<1>",), "simt"), folder)
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


def test_nvcc_builds_the_same_sources(tmp_path, monkeypatch):
    """Without a GPU the module still links and loads, and a launch is an error with CUDA's name for it."""
    try:
        nvcc = toolchain.nvcc("90a").path
    except ToolchainError as error:
        pytest.skip(str(error))
    threads = SOURCE.parent / "threads.cuh"
    expressions = ["threads::coordinates", "threads::dynamic", "threads::arguments"]
    monkeypatch.setattr(toolchain, "gpu_architecture", lambda: "90a")
    source = tmp_path / "module.cu"
    source.write_text(build._source(threads, expressions, "cuda", []))
    torch_include = Path(torch.__file__).parent / "include"
    includes = [f"-I{torch_include}", f"-I{sysconfig.get_paths()['include']}"]
    module = tmp_path / "nvcc_module.so"
    command = [
        nvcc,
        "-shared",
        "-Xcompiler",
        "-fPIC",
        "-DTORCH_EXTENSION_NAME=nvcc_module",
        *toolchain.cuda_flags("90a"),
        *includes,
    ]
    done = subprocess.run([*command, str(source), "-o", str(module)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    if torch.cuda.is_available():
        return
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import nvcc_module as m\n"
    code += "getattr(m, 'threads::coordinates')((1, 1, 1), (32, 1, 1), 0, 0, 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "RuntimeError: cudaError" in done.stderr, done.stderr
