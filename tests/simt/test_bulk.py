"""Listed instances of the emulation: built together, taken by calls, and no list is needed or trusted."""

import json
import re
import types

import pytest
import torch

from cuda_reference import build, bulk, recipes
from tests import children, instances
from tests.bulk import LISTED, Bulk
from tests.instances import Recorder
from tests.simt.test_first_calls import forget, launches, nvcc  # noqa: F401  a fixture, here of g++
from tritonkernels.errors import BuildError

CPU = torch.device("cpu")


@pytest.fixture
def listed(nvcc, tmp_path, monkeypatch):  # noqa: F811
    """listed({header: [expressions]}): there is a list of them, and nothing of it is built. Returns the compiler's stand-in."""

    def of(lists):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps({"simt": lists}))
        monkeypatch.setenv(bulk.VARIABLE, str(path))
        return nvcc

    monkeypatch.setattr(bulk, "unlisted", set())
    bulk._is_built.cache_clear()
    yield of
    bulk._is_built.cache_clear()


def test_a_list_becomes_few_modules_of_like_sizes(listed):
    lists = {"gemm/tiled.cuh": [f"gemm::tiled<{n}>" for n in range(2 * bulk.MOST + 1)], "gemm/naive.cuh": ["gemm::naive<1>"]}
    listed(lists)
    modules = bulk.modules()
    assert sorted((header, e) for header, expressions, _ in modules for e in expressions) == sorted(
        (header, e) for header, expressions in lists.items() for e in expressions
    )
    sizes = [len(expressions) for _, expressions, _ in modules]
    assert len(sizes) == 4 and sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[2] <= 2


def test_a_call_takes_the_module_that_is_built_and_else_its_design_s_own(listed):
    one, other = launches("tiled", 0) + launches("tiled", 1)
    compiler = listed({one.source.header: [one.expression, "gemm::tiled<another>"]})
    own = list(one.source.expressions)
    assert one.kernel(CPU) == one.expression and compiler.built == [own], "for one call the list is not built"
    forget()
    bulk.build_listed()
    assert compiler.built == [own, [one.expression, "gemm::tiled<another>"]]
    assert one.kernel(CPU) == one.expression
    assert [expressions for _, expressions, _ in build._kernels] == [(one.expression, "gemm::tiled<another>")]
    assert not bulk.unlisted
    assert other.kernel(CPU) == other.expression and bulk.unlisted == {(other.source.header, other.expression, "simt")}
    bulk.build_listed()
    assert len(compiler.built) == 2, "all is built"


def test_the_instances_of_a_kernel_that_has_changed_build_on_their_own(listed, monkeypatch):
    launch, *_ = launches("tiled")
    compiler = listed({"gemm/gone.cuh": ["gemm::gone"], launch.source.header: [launch.expression]})
    said = []
    monkeypatch.setattr(bulk.log, "warning", said.append)
    bulk.build_listed()
    assert compiler.built == [[launch.expression]] and "gemm/gone.cuh" in said[0] and len(said) == 1
    assert launch.kernel(CPU) == launch.expression and len(compiler.built) == 1


def test_workers_begin_with_their_shares_and_end_with_the_others_from_behind(listed, monkeypatch):
    listed({f"{letter}.cuh": ["f"] for letter in "abcd"})
    begun = []
    monkeypatch.setattr(build, "build_part", lambda header, *_: begun.append(header))
    monkeypatch.setattr(children, "run", lambda *command: begun.append(command[-1].rpartition(" ")[2]))
    for worker in ("gw0", "gw1"):
        config = types.SimpleNamespace(workerinput={"workerid": worker, "workercount": 2})
        Bulk().pytest_runtestloop(types.SimpleNamespace(config=config))
    assert begun == ["a.cuh", "c.cuh", "d.cuh", "b.cuh", "native.load()", "b.cuh", "d.cuh", "c.cuh", "a.cuh"]


def test_without_a_list_nothing_is_unlisted(listed, monkeypatch):
    monkeypatch.delenv(bulk.VARIABLE)
    launch, *_ = launches("tiled")
    assert launch.kernel(CPU) == launch.expression and not bulk.modules() and not bulk.unlisted


def test_the_list_is_of_kernels_that_exist():
    lists = json.loads(LISTED.read_text())
    assert set(lists) == {"simt", "trace"} and sum(map(len, lists["simt"].values())) > 30
    for header, expressions in ((header, lists[backend][header]) for backend in lists for header in lists[backend]):
        text = "".join(file.read_text() for file in recipes.sources([recipes.ROOT / header]))
        names = {expression.partition("<")[0].rpartition("::")[2] for expression in expressions}
        assert names and all(re.search(rf"__global__ [^;{{]*\b{name}\(", text) for name in names), header
        assert expressions == sorted(set(expressions))


def test_a_recorder_launches_nothing():
    recorder = Recorder()
    for header in ("gemm/tiled.cuh", "/a/test's/own.cuh"):
        assert recorder.load(header, ("gemm::tiled<1>",), (), "simt")["gemm::tiled<1>"](1, 2) is None
    assert recorder.found == {("simt", "gemm/tiled.cuh", "gemm::tiled<1>")}


def test_a_recorder_runs_programs_that_launch_in_its_own_process():
    run = instances._run("-m", "tests.memory.child", "some", "cuda_reference", "gemm/naive")
    assert run.returncode == 0 and run.stdout.splitlines()[-1] == "DONE gemm/naive"
    with pytest.raises(BuildError):
        instances._run("-c", "print()")
