"""python -m perf inspect: the machine code of Triton and CUDA designs side by side, for a GPU that need not be present.

A row per design: resources, the resulting occupancy, the instruction mix of the hot loop, and the time that the model predicts.
For a design of several kernels it is the one whose hot loop has the most arithmetic. The call is the first representative one
that the design accepts (4096^3 for gemm); the config is --config or the default. The JSON has the hot loop, too; `perf report`
has a table of what it finds in a folder's code.json.
"""

import os
import sys
import tempfile
from pathlib import Path

import torch

from cuda_reference import toolchain
from tritonkernels import OPS
from tritonkernels.analysis.occupancy import occupancy
from tritonkernels.analysis.tile import tile_facts
from tritonkernels.design import as_dict
from tritonkernels.errors import ConfigError, ToolchainError, TritonKernelsError, UnsupportedError
from tritonkernels.target import Target

from .. import ROOT
from ..arguments import writable
from ..offline import configs, sass
from ..offline.calls import representative_calls, unusual_calls
from ..offline.compiling import compile_launch
from ..show import table
from ..show.table import us
from . import records
from .environment import environment

CUDA = ROOT / "cuda_reference"


def add_arguments(parser):
    parser.add_argument(
        "what", nargs="+", metavar="OP[.DESIGN]", help=f"some of {', '.join(OPS)}, or a design of one: gemm.tiled"
    )
    parser.add_argument("--arch", default="sm_90", help="sm_80, sm_90, ... or an NVIDIA GPU's name; default: %(default)s")
    parser.add_argument(
        "--config",
        nargs="+",
        type=configs.number,
        metavar="NAME=NUMBER",
        default=[],
        help="a config of the design; default: its first",
    )
    parser.add_argument("--code", action="store_true", help="print the hot loops")
    parser.add_argument("--json", type=writable, metavar="FILE", help="write the facts there, layouts and hot loops included")


def main(options, parser):
    os.environ["TRITONKERNELS_BACKEND"] = "gpu"  # decorate kernels for a GPU: they are compiled, not run
    os.environ.pop("TRITON_INTERPRET", None)  # the user's, which Triton reads when it is imported
    rows, asked = [], {what.partition(".")[0] for what in options.what}
    try:
        target = Target.named(options.arch)
        if target.vendor != "nvidia":
            parser.error(f"inspect reads the machine code of NVIDIA GPUs only, got {target.name}")
        for op, _, name in (what.partition(".") for what in options.what):
            if op not in OPS:
                parser.error(f"unknown operation {op!r} (choose from {', '.join(OPS)})")
            own = list(inspect(op, target, name or None, dict(options.config) or None))
            if not own:
                parser.error(f"{op} has no design {name!r}")
            unknown = [row for row in own if "nearest" in row]
            if unknown and not any("config" in row for row in own):
                known = configs.lines((f"{row['implementation']} {row['design']}", row["nearest"]) for row in unknown)
                what = f"{op}.{name}" if name else op
                print(f"{parser.prog}: {unknown[0]['fault']}; the nearest of {what}:", *known, sep="\n", file=sys.stderr)
                return 2
            show(op, target, own, options.code)
            rows += [row for row in own if row["design"].partition(".")[0] not in asked]  # each once: gemm.tiled is gemm's
    except TritonKernelsError as error:
        parser.error(str(error))
    if options.json:
        compiled = environment(torch.device("cpu")) | {"device": f"compiled for {target.name} ({target.isa}), not run"}
        records.write_rows(options.json, [row | {"environment": compiled} for row in rows])
    return 0


def show(op, target, rows, code=False):
    headings, body = table_of(rows)
    print(f"{op} on {target.name} ({target.isa}), compiled, not run: {rows[0]['problem']}")
    table.print_table(headings, body)
    for row in rows:
        if row["problem"] != rows[0]["problem"]:
            print(f"{row['implementation']} {row['design']} on {row['problem']}")
        if "fault" in row:
            print(f"{row['implementation']} {row['design']}: {row['fault']}")
        elif code:
            print(f"\n{row['implementation']} {row['design']}, the hot loop:", *row["listing"], sep="\n")


def inspect(op, target, name=None, config=None, compiled=True):
    """The facts of each design of the operation (or of the one named) in both packages, as dicts that JSON can hold.

    Unless compiled, only its config and its predicted time, which take no compiler.
    """
    import cuda_reference.launch
    import tritonkernels.launch

    calls = [*representative_calls(op), *unusual_calls(op)]
    for implementation, library, compile_one in (
        ("triton", tritonkernels.launch.LIBRARY, _compile_triton),
        ("cuda", cuda_reference.launch.LIBRARY, _compile_cuda),
    ):
        for design in library.designs(op):
            if name not in (None, design.name):
                continue
            call = next((c for c in calls if design.refuses(c.problem, target) is None), calls[0])
            row = {"op": op, "implementation": implementation, "design": design.name, "problem": call.problem.describe()}
            try:
                _, chosen = library.choose(call.problem, target, design.name, config)
                row["config"] = as_dict(chosen)
                ranked = library.ranking(call.problem, target, design.name)
                estimate = next(choice.estimate for choice in ranked if as_dict(choice.config) == as_dict(chosen))
                if estimate is not None:  # of a lesson nothing is predicted
                    row |= {"predicted_s": estimate.seconds, "bound_by": estimate.bound_by}
                if not compiled:
                    yield row
                    continue
                kernels = [compile_one(launch, target) for launch in design.launches(call.problem, chosen, *call.parts[0])]
                code, facts = max(kernels, key=lambda x: sass.arithmetic(x[0].hot_loop()))
                yield row | facts | _facts(call.problem, design, chosen, code, facts, target)
            except ConfigError:
                nearest = configs.nearest(config, design, call.problem, target)
                yield row | {"fault": f"no config has {configs.words(config)}", "nearest": nearest}
            except (UnsupportedError, ToolchainError) as error:
                yield row | {"fault": str(error)}


def _compile_triton(launch, target):
    kernel = compile_launch(launch, target)
    (code,) = sass.read(kernel.asm["cubin"]).values()
    layouts = [line.split(" loc(")[0] for line in kernel.asm["ttgir"].splitlines() if line.startswith("#") and "= #ttg" in line]
    return code, {
        "threads": 32 * kernel.metadata.num_warps,
        "shared_bytes": kernel.metadata.shared,
        "layouts": layouts,
    }


def _compile_cuda(launch, target):
    with tempfile.TemporaryDirectory() as folder:
        unit, cubin = Path(folder, "unit.cu"), Path(folder, "unit.cubin")
        unit.write_text(f'#include "{launch.source.header}"\nauto kernel = &{launch.expression};\n')
        arch = toolchain.with_its_own(target.arch)
        command = [toolchain.nvcc(arch).path, "-std=c++17", "-cubin", f"-arch=sm_{arch}", "-I", CUDA, "-o", cubin, unit]
        toolchain.output(list(map(str, command)), timeout=600)
        (code,) = sass.read(cubin.read_bytes()).values()
    x, y, z = launch.block
    return code, {"threads": x * y * z, "shared_bytes": code.shared_bytes + launch.shared_bytes}


def _facts(problem, design, config, code, facts, target):
    mix = code.hot_loop()
    held = occupancy(target, facts["threads"], code.registers, facts["shared_bytes"])
    found = {
        "registers": code.registers,
        "stack_bytes": code.stack_bytes,
        "blocks_per_sm": held.blocks,
        "occupancy": held.fraction,
        "limited_by": ", ".join(held.limited_by),
        "hot_loop": dict(mix.most_common()),
        "hot_loop_instructions": mix.total(),
        "math_share": sass.share(mix, sass.MATH),
        "ffma_share": sass.share(mix, ("FFMA",)),
        "barriers": sass.count(mix, ("BAR",)),
        "shared_loads": _widths(mix, ("LDS",)),
        "global_loads": _widths(mix, ("LDG",)),
        "listing": list(code.listing()),
    }
    if design.tile:
        found["tile"] = tile_facts(problem, design.tile(config), target, code.registers, facts["shared_bytes"])
    return found


def _widths(mix, opcodes):
    """{bits: count} of the loads in the loop; LDGSTS (cp.async) counts as a global load."""
    widths = {}
    for opcode, count in mix.items():
        parts = opcode.split(".")
        if parts[0].startswith(opcodes) and parts[0] != "LDGDEPBAR":
            bits = next((int(part) for part in parts[1:] if part in ("64", "128")), 32)
            bits = 32 * int(parts[-1]) if parts[0] == "LDSM" and parts[-1].isdigit() else bits  # the number of matrices
            widths[bits] = widths.get(bits, 0) + count
    return dict(sorted(widths.items()))


def table_of(rows):
    """(headings, rows of text)."""
    headings = ["implementation", "design", "config", "regs", "stack", "shared", "blocks/SM", "occupancy", "loop", "FFMA"]
    headings += ["math", "LDS bits", "LDG bits", "barriers", "predicted us", "bound by"]
    return headings, [_cells(row) for row in rows]


def _cells(row):
    start = [row["implementation"], row["design"]]
    if "fault" in row:
        return start + ["-"] * 14
    return [
        *start,
        configs.words(row["config"]),
        str(row["registers"]),
        str(row["stack_bytes"]),
        str(row["shared_bytes"]),
        str(row["blocks_per_sm"]),
        f"{row['occupancy']:.0%}",
        str(row["hot_loop_instructions"]),
        f"{row['ffma_share']:.1%}",
        f"{row['math_share']:.1%}",
        _counts(row["shared_loads"]),
        _counts(row["global_loads"]),
        str(row["barriers"]),
        us(1e3 * row["predicted_s"]) if "predicted_s" in row else "-",
        row.get("bound_by", "-"),
    ]


def _counts(widths):
    return " ".join(f"{count}x{bits}" for bits, count in widths.items()) or "-"
