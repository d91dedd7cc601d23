"""The gate's steps with Triton's own sanitizers see faults that no result shows."""

import sys
from collections import Counter

import pytest

from perf import processes
from perf.gate import findings, gate_steps

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "mode, why", [("consan", "Buffer being accessed has outstanding writes"), ("gsan", "Write after write race detected")]
)
def test_a_planted_fault_is_reported(tmp_path, mode, why):
    if missing := gate_steps.uninstrumented():
        pytest.skip(missing)
    command = (sys.executable, "-m", "tests.gate.planted", "tritonkernels", "--go-on")
    job = processes.Job(command, tmp_path / "planted.log", gate_steps.instrumentation(mode, tmp_path))
    assert processes.run([job], 300) == [0], job.log.read_text()  # of its second process, which is of the right call
    outcome = findings.read_instrumented(job.log)
    assert outcome.counts == Counter(passed=1, failed=1) and list(outcome.failures) == ["planted"]
    assert why in outcome.failures["planted"]
