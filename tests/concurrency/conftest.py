"""A build with its own cache. One module is really built; a stand-in for the compiler copies it and counts."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from cuda_reference import build, recipes
from cuda_reference.launch import LIBRARY
from tests.concurrency.calls import launches
from tests.harness import designs
from tritonkernels import cache

SOURCE = Path(__file__).parents[1] / "simt/kernels/tiny.cuh"
KERNEL = "tiny::fill<1>"


@pytest.fixture(scope="session")
def every_cuda_design_built():
    """In the ordinary cache; two builds at a time, so that threads that call all designs at once do not start as many."""
    wanted = [launch for p in designs() if p.values[0] is LIBRARY for launch in launches(*p.values[1:])]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda launch: launch.kernel(torch.device("cpu")), wanted))


@pytest.fixture(scope="session")
def built():
    """The bytes of the module, from the ordinary cache."""
    build.load(SOURCE, [KERNEL], "simt")
    recipe = recipes.module(SOURCE, (KERNEL,), "simt")
    return (cache.folder() / recipe.name / f"{recipe.name}.so").read_bytes()


class Builds:
    """An entry in its own cache, as a new process would see it."""

    def __init__(self, folder, module):
        self.folder = folder
        self.module_bytes = module
        self.compiled = 0
        self.name = recipes.module(SOURCE, (KERNEL,), "simt").name
        self.entry = folder / self.name
        self.module = self.entry / f"{self.name}.so"
        self.digest = self.entry / f"{self.name}.sha256"

    def compile(self, recipe, folder, timeout):
        self.compiled += 1
        (folder / f"{recipe.name}.so").write_bytes(self.module_bytes)

    def load(self):
        build._kernels.clear()
        out = torch.zeros(4, dtype=torch.int32)
        build.load(SOURCE, [KERNEL], "simt")[KERNEL]((1, 1, 1), (4, 1, 1), 0, 0, out.data_ptr())
        assert out.tolist() == [1] * 4


@pytest.fixture
def builds(built, tmp_path, monkeypatch):
    builds = Builds(tmp_path / "cache", built)
    monkeypatch.setenv("TRITONKERNELS_CACHE", str(builds.folder))
    monkeypatch.setattr(build, "_kernels", {})
    monkeypatch.setattr(build, "_compile", builds.compile)
    return builds
