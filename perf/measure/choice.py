"""python -m perf choice: what a choice of a design and a config takes the host, of both packages, without a GPU.

A choice for a problem that is new to the process, of random shapes of every operation (perf/measure/shapes.py); and the first
choice of a process, which reads tables, of one shape, after everything is imported. Times are of the CPU, in milliseconds.
"""

import concurrent.futures
import importlib
import multiprocessing
import statistics
import time

from tritonkernels.errors import UnsupportedError
from tritonkernels.target import Target

from ..show.table import print_table
from . import shapes
from .contenders import PACKAGES

HEADINGS = ("operation", "package", "problems", "median ms", "90 %", "worst", "first of a process")


def add_arguments(parser):
    parser.add_argument("--gpu", default="h200", help="a name of the table of targets; default: %(default)s")
    parser.add_argument("--number", type=int, default=300, help="of shapes; default: %(default)s")


def main(options, parser):
    print_table(HEADINGS, [row for op in shapes.FAMILIES for row in _rows(op, Target.named(options.gpu), options.number)])
    return 0


def _rows(op, target, number):
    for package in PACKAGES.values():
        first, *_ = _in_a_new_process(package, op, target, 1)
        _, *others = taken(package, op, target, number)
        figures = statistics.median(others), sorted(others)[len(others) * 9 // 10], max(others), first
        yield [op, package, str(len(others)), *(f"{1e3 * seconds:.2f}" for seconds in figures)]


def taken(package, op, target, number):
    """Seconds of the CPU for each choice, the first of the package included."""
    own, found = importlib.import_module(f"{package}.launch").LIBRARY, []
    own.designs(op)
    for shape in shapes.draw(op, number):
        begun = time.thread_time()
        try:
            own.choose(shape.problem, target)
        except UnsupportedError:
            continue
        found.append(time.thread_time() - begun)
    return found


def _in_a_new_process(*arguments):
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(taken, *arguments).result()
