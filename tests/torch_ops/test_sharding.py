"""Calls of torch.distributed's DTensors, on four processes and on a stand-in for four."""

import json

import pytest
import torch

from tests import children
from tests.harness import short
from tests.torch_ops.samples import both_packages
from tests.torch_ops.sharded import CASES, RANKS, placements
from tritonkernels.errors import ArgumentError, DtypeError, ShapeError, UnknownDesignError

# The first of each operation, and one that a later one differs from by an option alone: it must not be taken for it.
FEW = {*{name.partition(",")[0]: name for name in reversed(CASES)}.values(), "matmul, int8"}


@pytest.fixture(scope="module")
def outcomes(once, request):
    """Outcomes of FEW cases and of all others that run, at once: processes take seconds to start."""
    shares = [item for item in request.session.items if item.function is test_shares_of_four_processes_make_the_whole]
    names = FEW.union(item.callspec.params["name"] for item in shares)

    def computed():
        run = children.run("-m", "tests.torch_ops.sharded", *names)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    return once("sharded", computed)


@short(lambda name: name in FEW)
@pytest.mark.parametrize("name", CASES)
def test_shares_of_four_processes_make_the_whole(outcomes, name):
    """Result and gradients are those of one process, and only what must be moved is moved."""
    from torch.distributed.tensor import DTensor

    case = CASES[name]
    whole_groups = case.own_groups and not hasattr(DTensor._op_dispatcher.sharding_propagator, "op_to_scalar_shape_adjuster")
    for placed, moves, difference in outcomes[name]:
        if "Attempted to flatten" in str(difference) and torch.__version__ < "2.12":
            pytest.skip("DTensor of torch 2.11 does not flatten a batch whose rows are shared out, for torch.nn.Linear neither")
        assert difference is None
        if case.result is None or whole_groups:
            assert moves > 0 and "Partial" not in placed
        else:
            assert (placed, moves) == (str(placements(case.result)), 0)
    assert len(outcomes[name]) == RANKS


def test_a_wrong_rule_is_noticed(outcomes):
    assert all(difference.startswith("AssertionError('Tensor-likes are not equal!") for _, _, difference in outcomes["wrong"])


@pytest.fixture
def four():
    """A mesh of four ranks, of which the other three are only said to be there."""
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    yield init_device_mesh("cpu", (RANKS,))
    distributed.destroy_process_group()


@both_packages
@pytest.mark.parametrize(
    "shape, options, error",
    [
        ((13, 16), {}, ShapeError),
        ((12, 16), {"precision": "fp16"}, ArgumentError),
        ((12, 16), {"out_dtype": torch.float16}, DtypeError),
        ((12, 16), {"design": "no_such"}, UnknownDesignError),
    ],
)
def test_errors_are_those_of_whole_tensors(package, four, shape, options, error):
    from torch.distributed.tensor import Shard, distribute_tensor

    a, b = torch.ones(8, 12), torch.ones(shape)
    said = []
    for operands in ((a, b), (distribute_tensor(a, four, [Shard(0)]), distribute_tensor(b, four))):
        with pytest.raises(error) as raised:
            package.matmul(*operands, **options)
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_compiled(four):
    """In one graph, with the placements of the call and its gradient."""
    from torch.distributed.tensor import Partial, Shard, distribute_tensor

    import cuda_reference

    x = distribute_tensor(torch.ones(8, 12), four, [Shard(1)]).requires_grad_()
    weight = distribute_tensor(torch.ones(12, 16), four, [Shard(0)])
    result = torch.compile(cuda_reference.gemm, fullgraph=True, backend="aot_eager")(x, weight)
    assert result.placements == (Partial(),)
    result.sum().backward()
    assert x.grad.placements == x.placements
