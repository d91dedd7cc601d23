"""python -m perf counters: what L2 and DRAM send in a design's call, by the GPU's own counters (ncu, of Nsight Compute).

Times say that something helps, counters why. Of each design the first configs of the choice's ranking run, with --config
those that have the numbers named: `--design persistent --config BM=256 CLUSTER=2`. ncu empties the caches before each kernel,
so these are bytes of one call by itself.

Exit status: 2 without a GPU or ncu, or if it is not allowed to read the counters.
"""

import argparse
import csv
import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from tritonkernels import OPS
from tritonkernels.design import as_dict

from ..arguments import writable
from ..show import table
from . import baselines, contenders
from .environment import add_commit, environment
from .suites import SUITES

SECTOR = 32  # bytes
COUNTERS = {  # of a record: (ncu's name, bytes of one)
    "l2_read_bytes": ("lts__t_sectors_op_read.sum", SECTOR),
    "l2_to_sms_bytes": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1),
    "dram_read_bytes": ("dram__bytes_read.sum", 1),
}
MARK = "spin_kernel"  # of torch.cuda._sleep: it stands before the kernels of each contender


def add_arguments(parser):
    parser.add_argument("op", choices=OPS, metavar="OP", help=f"of {', '.join(OPS)}")
    parser.add_argument("--suite", choices=SUITES, default="smoke", help="default: %(default)s")
    parser.add_argument("--case", metavar="TEXT", default="", help="only cases whose names have it")
    parser.add_argument("--design", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--implementation", nargs="+", choices=contenders.PACKAGES, default=list(contenders.PACKAGES))
    parser.add_argument("--config", nargs="+", type=_number, metavar="NAME=VALUE", default=[], help="only configs with these")
    parser.add_argument("--configs", type=int, default=1, metavar="N", help="of each design; default: %(default)s")
    parser.add_argument("--json", type=writable, metavar="FILE", help="write the records there")
    add_commit(parser)


def _number(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return name, value


def main(options, parser):
    device = contenders.device()
    if device.type != "cuda" or not shutil.which("ncu"):
        missing = "torch sees none" if device.type != "cuda" else "there is no ncu (Nsight Compute) in PATH"
        print(f"counters needs a GPU and ncu; {missing}", file=sys.stderr)
        return 2
    wanted = list(selected(options, device))
    if not wanted:
        parser.error("no design takes a case that these options leave")
    with tempfile.TemporaryDirectory() as folder:
        log, todo = Path(folder) / "counters.csv", Path(folder) / "wanted.json"
        todo.write_text(json.dumps([options.suite, wanted]))
        names = ",".join(name for name, _ in COUNTERS.values())
        command = [
            "ncu",
            "--clock-control",
            "none",
            "--profile-from-start",
            "off",
            "--metrics",
            names,
            "--csv",
            "--page",
            "raw",
        ]
        command += ["--print-units", "base", "--log-file", str(log), sys.executable, "-m", __spec__.name, str(todo)]
        subprocess.run(command, check=False)
        text = log.read_text() if log.exists() else ""
    sums = counted(text)
    if len(sums) != len(wanted):
        print(f"ncu counted {len(sums)} of {len(wanted)} calls: {_complaint(text)}", file=sys.stderr)
        return 2
    keys = "implementation", "op", "case", "design", "config"
    rows = [dict(zip(keys, each)) | counts for each, counts in zip(wanted, sums)]
    if options.json:
        options.json.write_text(json.dumps({"environment": environment(device, options.commit), "records": rows}, indent=1))
    body = [[*map(_text, list(row.values())[:5]), *(_megabytes(row[name]) for name in COUNTERS)] for row in rows]
    table.print_table([*keys, "L2 read", "to SMs", "DRAM read"], body)
    return 0


def selected(options, device):
    """[implementation, op, case, design, config] of each call, or torch's with neither design nor config."""
    for case in (c for c in SUITES[options.suite] if c.op == options.op and options.case in c.name):
        args, kwargs = case.outlines()
        for implementation in options.implementation:
            library = importlib.import_module(f"{contenders.PACKAGES[implementation]}.launch").LIBRARY
            problem, found = library.operation(case.op).prepare(*args, **kwargs).problem, {}
            for choice in _ranked(library, problem, library.target(device), options.design):
                config = as_dict(choice.config)
                if all(str(config.get(name)) == value for name, value in options.config):
                    found.setdefault(choice.design.name, []).append(config)
            for design, configs in found.items():
                yield from ([implementation, case.op, case.name, design, config] for config in configs[: options.configs])
        yield ["torch", case.op, case.name, None, None]


def _ranked(library, problem, target, names):
    """The Choices of the designs of these names that take the problem, also of lessons; without names, of all contenders."""
    if names is None:
        return library.ranking(problem, target)
    willing = {design.name for design in library.designs(problem.op) if design.refuses(problem, target) is None}
    return [choice for name in names if name in willing for choice in library.ranking(problem, target, name)]


def counted(text):
    """{counter: its sum over the kernels} of each call in ncu's CSV, which has a line of names and one of units before them."""
    lines = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))[1:]
    calls = []
    for line in lines:
        if MARK in line["Kernel Name"]:
            calls.append(dict.fromkeys(COUNTERS, 0))
        else:
            for name, (counter, size) in COUNTERS.items():
                calls[-1][name] += round(float(line[counter].replace(",", "")) * size)
    return calls


def _complaint(text):
    return next((line for line in text.splitlines() if "ERR" in line), "it gave no reason")


def _text(value):
    return " ".join(f"{name}={number}" for name, number in value.items()) if isinstance(value, dict) else value or "-"


def _megabytes(count):
    return f"{count / 1e6:.1f} MB"


def run(suite, wanted):
    """Makes each call twice, in a process under ncu, which counts the second."""
    device, known = contenders.device(), {(case.op, case.name): case for case in SUITES[suite]}
    for implementation, op, name, design, config in wanted:
        args, kwargs = known[op, name].arguments(0, device, drawn_on=device)
        (_, call, _), *_ = baselines.BASELINES[op]
        prepared = importlib.import_module(f"tritonkernels.{op}").prepare(*args, **kwargs)
        if design:
            package = importlib.import_module(contenders.PACKAGES[implementation])
            more, call = {"design": design, "config": config}, getattr(package, op)
        else:
            more = {"out": prepared.result}
        with baselines.precision(prepared.problem.precision):
            call(*args, **kwargs, **more)
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            torch.cuda._sleep(1)
            call(*args, **kwargs, **more)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


if __name__ == "__main__":
    run(*json.loads(Path(sys.argv[1]).read_text()))
