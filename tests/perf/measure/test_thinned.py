"""The probe for smaller precisions accuses no design wrongly: where an element is one product, its error is that of one."""

import importlib

import pytest

from perf.measure import contenders
from perf.measure.check import SUMMED, Checker, Output, thin_out
from perf.measure.suites import SUITES
from tritonkernels.errors import UnsupportedError

CASES = {}  # the first of each operation and precision
for case in (*SUITES["smoke"], *SUITES["precision"]):
    args, kwargs = case.outlines()
    problem = importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs).problem
    if case.op in SUMMED and problem.dtype.is_floating_point and not case.gpu_only:
        CASES.setdefault(f"{case.op} {problem.precision} {problem.dtype}", case)


@pytest.mark.usefixtures("triton_only")
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_single_product_has_the_error_of_one(case):
    args, kwargs = case.arguments(0, contenders.device())
    call = importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs)
    thin_out(case.op, args)
    checker, judged = Checker(args, kwargs), []
    for contender in contenders.contenders(case.op):
        output = Output(call.result)
        try:
            config = contender.explain(*args, **kwargs)["config"]
            if contender.implementation == "torch" or contender.transform(config):
                continue
            computed = contender.call(*args, out=output.tensor, **kwargs)
        except UnsupportedError:
            continue
        judged.append((contender.design, checker.judge(call.problem, output, computed, terms=1).fault))
    assert judged and [found for found in judged if found[1]] == []
