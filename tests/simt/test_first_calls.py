"""A first call on a GPU builds what it launches, and nothing that is built already; shown with a stand-in for nvcc."""

import json
import logging
import os
import re
import threading
import time

import pytest
import torch

from cuda_reference import build, recipes, toolchain
from cuda_reference.launch import LIBRARY
from tests.concurrency.calls import runs
from tests.concurrency.test_locks import in_a_fork
from tests.harness import designs
from tritonkernels import cache
from tritonkernels.errors import BuildError, ToolchainError

GPU = torch.device("cuda", 0)


class Nvcc:
    """Writes the names of a module's kernels, which load as themselves. `built` and `said` are of all processes."""

    def __init__(self, folder):
        self.log, self.notices = folder / "built", folder / "notices"

    def compile(self, recipe, folder, timeout):
        kernels = re.findall(r'bind\(module, "(.*?)"', recipe.source)
        with open(self.log, "a") as log:
            log.write(json.dumps(kernels) + "\n")
        time.sleep(0.2)  # others that need it come meanwhile
        (folder / f"{recipe.name}{recipe.suffix}").write_text(json.dumps(kernels))

    def load(self, name, descriptor):
        with open(descriptor) as file:
            return type("Module", (), {kernel: kernel for kernel in json.load(file)})

    @property
    def built(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    @property
    def said(self):
        return self.notices.read_text().splitlines()


@pytest.fixture
def nvcc(tmp_path, monkeypatch):
    nvcc = Nvcc(tmp_path)
    log = logging.Logger("test")
    log.addHandler(logging.FileHandler(nvcc.notices))
    monkeypatch.setenv("TRITONKERNELS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "flags", lambda backend: (["-arch=sm_90a"], [f"{backend} 13.0"]))
    for name, value in {"_kernels": {}, "_locks": {}, "_compile": nvcc.compile, "_import": nvcc.load, "log": log}.items():
        monkeypatch.setattr(build, name, value)
    return nvcc


def launches(design, number=0, op="gemm", shapes=((16, 32), (32, 16))):
    """Launches of the design's config of that number, for a small call."""
    call = LIBRARY.operation(op).prepare(*map(torch.ones, shapes))
    target = LIBRARY.target(call.result.device)
    chosen, _ = LIBRARY.choose(call.problem, target, design)
    config = list(chosen.configs(call.problem, target))[number]
    return list(chosen.launches(call.problem, config, *call.parts[0]))


def forget():
    """This process's modules, as in a new process."""
    build._kernels.clear()


def test_a_call_builds_one_instance_and_a_second_config_another(nvcc):
    one, other = launches("tiled", 0) + launches("tiled", 1)
    assert one.source == other.source and one.expression != other.expression
    for launch in (one, one, other, one):
        assert launch.kernel(GPU) == launch.expression
    assert nvcc.built == [[one.expression], [other.expression]]
    forget()
    assert [launch.kernel(GPU) for launch in (one, other)] == [one.expression, other.expression]
    assert len(nvcc.built) == 2, "both are in the cache"


def test_kernels_of_one_call_are_built_together(nvcc):
    sums, add = launches("channel_sums", op="conv2d_bias", shapes=[(2, 3, 64, 64)])
    for launch in (sums, add):
        assert launch.kernel(GPU) == launch.expression
    assert nvcc.built == [[sums.expression, add.expression]]


@pytest.mark.parametrize("as_in_a_new_process", [False, True])
def test_a_bulk_build_serves_every_config(nvcc, as_in_a_new_process):
    one, other = launches("tiled", 0) + launches("tiled", 1)
    one.build(whole=True)
    if as_in_a_new_process:
        forget()
    for launch in (one, other):
        assert launch.kernel(GPU) == launch.expression
    assert nvcc.built == [list(one.source.expressions)] and not nvcc.said


def test_a_tuning_builds_what_a_call_launches_and_knows_how_long_that_takes(nvcc):
    one, other = launches("tiled", 0) + launches("tiled", 1)
    assert LIBRARY.build_seconds(one) == build.TYPICAL
    one.build()
    assert nvcc.built == [[one.expression]] and not build._kernels and LIBRARY.build_seconds(one) == 0
    assert 0.2 <= LIBRARY.build_seconds(other) < build.TYPICAL, "as long as that of one"
    other.build(whole=True)
    assert LIBRARY.build_seconds(other) == 0
    other.build()
    assert len(nvcc.built) == 2


def test_a_build_that_was_ended_is_expected_to_take_twice_as_long(nvcc, monkeypatch):
    def end(recipe, folder, timeout):
        time.sleep(0.1)
        raise SystemExit

    launch, *_ = launches("tiled")
    monkeypatch.setattr(build, "TYPICAL", 0.15)
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(build, "_compile", end)
        launch.build()
    assert LIBRARY.build_seconds(launch) >= 0.2 and not list(cache.folder().glob(".building-*"))
    launch.build()
    assert nvcc.built == [[launch.expression]]


def test_a_repeated_call_looks_at_no_file(nvcc, monkeypatch):
    launch, *_ = launches("tiled")
    launch.kernel(GPU)
    monkeypatch.setattr(recipes, "module", None)
    monkeypatch.setattr(cache, "find", None)
    assert launch.kernel(GPU) == launch.expression


def test_what_is_built_is_said_once(nvcc):
    launch, *_ = launches("tiled")
    for _ in range(2):
        launch.kernel(GPU)
        forget()
    (line,) = nvcc.said
    assert launch.expression in line and re.search(r"usually takes \d+ to \d+ s$", line)


def test_threads_and_processes_build_it_once_and_say_so_once(nvcc):
    launch, *_ = launches("tiled")
    children = [in_a_fork(lambda: launch.kernel(GPU)) for _ in range(2)]
    threads = [threading.Thread(target=launch.kernel, args=(GPU,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert nvcc.built == [[launch.expression]] and len(nvcc.said) == 1


@pytest.mark.parametrize("whole", [False, True])
def test_a_damaged_module_is_not_used(nvcc, whole):
    launch, *_ = launches("tiled")
    launch.build(whole=True) if whole else launch.kernel(GPU)
    (module,) = cache.folder().glob("*/*.so")
    module.write_text('["another\'s"]')
    forget()
    assert launch.kernel(GPU) == launch.expression
    assert nvcc.built[1:] == [[launch.expression]]


def test_errors_are_those_of_any_build(nvcc, monkeypatch):
    def fails(recipe, folder, timeout):
        raise BuildError(f"building {recipe.name} failed:\nno such instruction")

    launch, *_ = launches("tiled")
    monkeypatch.setattr(build, "_compile", fails)
    with pytest.raises(BuildError, match=r"building cuda_gemm_tiled_\w+ failed:\nno such instruction"):
        launch.kernel(GPU)

    def missing(backend):
        raise ToolchainError("there is no nvcc: install the CUDA toolkit")

    monkeypatch.setattr(toolchain, "flags", missing)
    with pytest.raises(ToolchainError, match="install the CUDA toolkit"):
        launch.kernel(GPU)
    assert not nvcc.built


def test_the_emulation_builds_all_configs_at_once(monkeypatch):
    asked = []
    launch, *_ = launches("tiled")
    monkeypatch.delenv("TRITONKERNELS_INSTANCES")
    monkeypatch.setattr(build, "load", lambda *key: asked.append(key) or {launch.expression: len})
    assert launch.kernel(torch.device("cpu")) is len
    assert asked == [(launch.source.header, launch.source.expressions, "simt")]


@pytest.mark.parametrize("op, design", [p.values[1:] for p in designs() if p.values[0] is LIBRARY])
def test_a_call_builds_one_module_of_a_source(op, design):
    """Its kernels are in the part that is built, and no second part of the same source is."""
    chosen = {d.name: d for d in LIBRARY.designs(op)}[design]
    for call, _, _, config in runs(LIBRARY, op, design, every_config=True):
        parts = {}
        for launch in (one for tensors in call.parts for one in chosen.launches(call.problem, config, *tensors)):
            part = launch.part or launch.source.expressions
            assert launch.expression in part and set(part) <= set(launch.source.expressions)
            assert parts.setdefault(launch.source, part) == part
