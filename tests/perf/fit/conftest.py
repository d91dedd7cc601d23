"""A contender of gemm whose kernel is as simple as can be, so that a fit to made-up times has little to find besides them."""

import pytest

from tritonkernels.design import Design, Designs
from tritonkernels.gemm.parts.space import block_tile, blocked_configs
from tritonkernels.launch import LIBRARY
from tritonkernels.operations.gemm.work import of_tiles


@pytest.fixture(scope="module", autouse=True)
def a_simple_contender():
    """One kernel, a tile a program, one stage; in place of the lesson `tiled`, which has no work to count."""
    own = LIBRARY.designs("gemm")
    simple = Design(
        configs=lambda problem, target: blocked_configs(problem, target, num_stages=(1,)),
        launches=lambda problem, config, *tensors: (),
        work=of_tiles(block_tile),
        key="gemm.tiled",
        name="tiled",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LIBRARY._designs, "gemm", Designs(simple if design.name == "tiled" else design for design in own))
        yield
