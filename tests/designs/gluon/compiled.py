"""Facts of the Gluon designs compiled for sm_90, as JSON: a program, because in the tests' process kernels are interpreted."""

import collections
import importlib
import json

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

from perf.offline import compile_launch, sass
from tests.designs.gluon.operands import DESIGNS, OPERANDS
from tests.harness import prepare
from tritonkernels.target import Target

COUNTED = ("warp_tiled", "vectorized", "async_copy")  # of padded slices Triton's bank_conflicts knows nothing: test_banks.py
TARGET = Target.named("h200")


@gluon.jit
def _store_conflicts(
    LOAD: gl.constexpr, SHARED: gl.constexpr, READ: gl.constexpr, IS_A: gl.constexpr, SHAPE: gl.constexpr, DTYPE: gl.constexpr
):
    place = gl.allocate_shared_memory(DTYPE, SHAPE, SHARED)
    elements = gl.full(SHAPE, 0.0, DTYPE, LOAD)
    gl.static_assert(gl.bank_conflicts(elements.type, place.type) == 0, "a bank conflict")


@gluon.jit
def _load_conflicts(
    LOAD: gl.constexpr, SHARED: gl.constexpr, READ: gl.constexpr, IS_A: gl.constexpr, SHAPE: gl.constexpr, DTYPE: gl.constexpr
):
    place = gl.allocate_shared_memory(DTYPE, SHAPE, SHARED)
    if IS_A:
        place = place.permute((1, 0))
    elements = place.load(READ)
    gl.static_assert(gl.bank_conflicts(elements.type, place.type) == 0, "a bank conflict")


def conflicts(layouts, config, dtype=gl.float32, reads=None):
    """Which shared-memory accesses have bank conflicts, of "store A", "load A", "store B", "load B".

    reads: the layouts in which A and B are read; None: those of a product on CUDA cores.
    """
    found = []
    reads = reads or [gl.DotOperandLayout(operand, layouts["ACC"], 0) for operand in (0, 1)]
    for operand, name in enumerate("AB"):
        shape = (config.kwargs["BLOCK_K"], config.kwargs["BLOCK_M" if name == "A" else "BLOCK_N"])
        constants = {"LOAD": layouts[f"LOAD_{name}"], "SHARED": layouts[f"SHARED_{name}"]}
        constants |= {"READ": reads[operand], "IS_A": name == "A", "SHAPE": shape, "DTYPE": dtype}
        for access, kernel in (("store", _store_conflicts), ("load", _load_conflicts)):
            source = GluonASTSource(kernel, dict.fromkeys(constants, "constexpr"), constants, {})
            try:
                triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": config.num_warps})
            except triton.CompilationError as error:
                if "a bank conflict" not in str(error):
                    raise
                found.append(f"{access} {name}")
    return found


def layouts(module, launch):
    """A launch's layouts by name: async_copy's are in a struct, a lesson's are its module's and depend on the operands."""
    if "how" in launch.values:
        return launch.values["how"]._asdict()
    shared = {"SHARED_A": module.SHARED, "SHARED_B": module.SHARED}
    return {"ACC": module.ACC, **shared, **{name: launch.values[name] for name in ("LOAD_A", "LOAD_B")}}


def facts(design, operands):
    """The facts of the default config."""
    module = importlib.import_module(f"tritonkernels.gemm.{design}")
    call = prepare("gemm", *OPERANDS[operands]())
    config = next(iter(module.DESIGN.configs(call.problem, TARGET)))
    *_, launch = module.DESIGN.launches(call.problem, config, *call.parts[0])
    kernel = compile_launch(launch, TARGET)
    (code,) = sass.read(kernel.asm["cubin"]).values()
    loop = code.hot_loop()
    return {
        "design": design,
        "operands": operands,
        "registers": code.registers,
        "stack": code.stack_bytes,
        "shared": kernel.metadata.shared,
        "ffma_share": sass.share(loop, ("FFMA",)),
        "loop": loop,
        "all": collections.Counter(text.split()[0] for _, text in code.instructions),
        "conflicts": conflicts(layouts(module, launch), config) if design in COUNTED else None,
    }


def main():
    print(json.dumps([facts(design, operands) for design in DESIGNS for operands in OPERANDS]))
