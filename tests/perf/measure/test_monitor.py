"""A GPU's state while it works, of an nvidia-smi that a test writes."""

import sys
import time

import pytest
import torch

from perf.measure import monitor
from perf.measure.monitor import Monitor, State, joined, parsed


@pytest.mark.parametrize(
    "line, reading",
    [
        ("1980, 412.35, 51, 0x0000000000000004\n", (1980.0, 412.35, 51.0, 4)),
        ("[N/A], [Not Supported], 51, 0x0000000000000000\n", (None, None, 51.0, 0)),
        ('Field "clocks_event_reasons.active" is not a valid field to query.\n', None),
        ("\n", None),
    ],
)
def test_a_line_is_a_reading(line, reading):
    assert parsed(line) == reading


def test_a_state_is_of_medians_and_of_every_reason():
    readings = [(1980.0, 400.0, 50.0, 0x1), (1700.0, 690.0, None, 0x4), (1500.0, 700.0, 60.0, 0x2 | 0x40)]
    assert joined(readings) == State(1700.0, 690.0, 55.0, "power cap, hardware thermal slowdown")
    assert joined([(None, None, None, None)]) == State() == joined([])


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """smi(code): an nvidia-smi that runs this Python, and a GPU."""

    def install(code):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!{sys.executable}\nimport sys, time\n{code}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(monitor, "smi_name", lambda device: "GPU-0")

    return install


def state(seen, started=0.0):
    deadline = time.monotonic() + 30
    with Monitor(torch.device("cuda")) as watched:
        while not seen(watched) and time.monotonic() < deadline:
            time.sleep(0.01)
        process = watched._process
        found = watched.since(started)
    assert process is None or process.returncode is not None, "it has ended"
    return found


def test_readings_are_those_since_a_time(smi):
    smi('[print(f"{mhz}, 500, 40, {bits:#x}", flush=True) for mhz, bits in ((1500, 4), (1980, 0), (1980, 0))]; time.sleep(60)')
    assert state(lambda m: len(m._readings) == 3) == State(1980.0, 500.0, 40.0, "power cap")
    assert state(lambda m: len(m._readings) == 3, time.perf_counter() + 60) == State(1980.0, 500.0, 40.0, "")  # the newest one


def test_it_asks_about_this_gpu_all_the_time(smi, tmp_path):
    smi(f"open({str(tmp_path / 'asked')!r}, 'w').write(' '.join(sys.argv[1:])); print('1, 1, 1, 0x0', flush=True)")
    state(lambda m: m._readings)
    asked = (tmp_path / "asked").read_text()
    assert "--id=GPU-0" in asked and "--loop-ms=100" in asked and "clocks_event_reasons.active" in asked


def test_without_a_gpu_or_nvidia_smi_there_are_no_readings(monkeypatch, tmp_path):
    with Monitor(torch.device("cpu")) as watched:
        assert watched.since(0.0) == State()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(monitor, "smi_name", lambda device: "GPU-0")
    assert state(lambda m: True) == State()
