"""What holds for every valid call of every design: the result is right, and nothing else changes."""

import pytest
import torch

from tests.harness import DEVICES, available_on, bits, designs, long, prepare, sentinel
from tests.properties.examples import Layout
from tests.properties.strategies import calls_of
from tritonkernels.errors import UnsupportedError

pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.parametrize("library, op, design", designs()),
    pytest.mark.timeout(900),  # shrinking a failure takes its time
]

# Of each design: half a second (15 on a GPU); --depth and `make fuzz` take more. The emulation takes 2 ms a call, the
# interpreter 20 to 200. Compiled for a GPU, Triton takes 0.5 to 2 s for each new combination of strides and alignments.
EXAMPLES = {
    ("cuda_reference", "cpu"): 8,
    ("cuda_reference", "cuda"): 50,
    ("tritonkernels", "cpu"): 4,
    ("tritonkernels", "cuda"): 8,
}
STEPS = 400  # programs times products per element, as far as the interpreter is patient


def config_of(library, design, call, rank):
    """The design's config of that rank, counted round.

    The first one if the other is in another module, which takes 10 s to build, or has tiles too small for the interpreter.
    """
    target = library.target(call.result.device)
    configs = list(design.configs(call.problem, target))
    config = configs[rank % len(configs)]
    if not call.result.numel():  # nothing will be launched
        return config
    launches, of_first = (
        [x for part in call.parts for x in design.launches(call.problem, c, *part)] for c in (config, configs[0])
    )
    if library.package == "cuda_reference":
        return config if {x.source for x in launches} <= {x.source for x in of_first} else configs[0]
    steps = sum(torch.Size(launch.grid).numel() for launch in launches) * call.problem.terms
    return config if target.is_gpu or steps <= STEPS else configs[0]


def accepted(library, op, design, call):
    """The design, or None if it refuses the call with its own reason."""
    chosen = next(d for d in library.designs(op) if d.name == design)
    refusal = chosen.refuses(call.problem, library.target(call.result.device))
    if refusal is None:
        return chosen
    with pytest.raises(UnsupportedError) as caught:
        library.run(call, design)
    assert refusal in str(caught.value), f"refused with {caught.value}, not {refusal}"
    return None


@long(lambda library, op: op == "matmul" and library.package == "cuda_reference")
def test_results_are_right_and_nothing_else_changes(library, op, design, device, for_all):
    """Within the error bound of float64, of torch's shape and dtype, inputs and the memory around them and out untouched."""
    available_on(library, device)

    def check(example):
        (tensors, buffers), options = example.build(device), example.keywords(device)
        plain = prepare(op, *tensors, **options)
        chosen = accepted(library, op, design, plain)
        if chosen is None:
            return False
        layout = example.out or Layout()
        out, around = layout.place(plain.result.shape, plain.result.dtype, device)
        before = [None if buffer is None else bits(buffer) for buffer in buffers]

        call = prepare(op, *tensors, out=out, **options)
        config = config_of(library, chosen, call, example.config)
        result = library.run(call, design, config)

        assert all(b is None or torch.equal(b, bits(buffer)) for b, buffer in zip(before, buffers)), "an input was changed"
        verdict = library.judge(call, design, config, *tensors, **options)
        assert verdict.ok, f"error {verdict.error:.3g} above the bound {verdict.bound:.3g}"
        assert result is out, "out was not returned"
        out.fill_(sentinel(out.dtype))
        poison = torch.full_like(around, sentinel(out.dtype))
        assert torch.equal(bits(around), bits(poison)), "memory around out was written"
        if op in ("conv2d", "conv2d_input", "conv2d_weight") and call.problem.channels_last:
            in_kind = plain.result.is_contiguous(memory_format=torch.channels_last)
            assert in_kind, "channels_last would not be answered in channels_last"
        return True

    for_all(calls_of(library, op, design, device), EXAMPLES[library.package, device], check)
