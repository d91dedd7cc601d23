"""The state of a GPU while it works: clocks, power, temperature, and what slows its clocks down, as nvidia-smi reports them."""

import statistics
import subprocess
import threading
import time
from typing import NamedTuple

from .environment import smi_name

FIELDS = "clocks.sm,power.draw,temperature.gpu,clocks_event_reasons.active"
EVERY_MS = 100
REASONS = {  # NVML's bits, of which others (idle, clocks that somebody has set) are nothing that happens to a run
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


class State(NamedTuple):
    """Medians of readings, and every reason in one of them; None and "" where there are none."""

    sm_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttled: str = ""


class Monitor:
    """Reads a GPU's state ten times a second, in a context. Without a GPU or nvidia-smi there are no readings."""

    def __init__(self, device):
        self._device, self._process, self._readings = device, None, []

    def __enter__(self):
        if name := smi_name(self._device):
            command = ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits", f"--loop-ms={EVERY_MS}"]
            try:
                self._process = subprocess.Popen([*command, f"--id={name}"], stdout=subprocess.PIPE, text=True)
            except OSError:
                return self
            threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()
        return self

    def __exit__(self, *_):
        if self._process:
            self._process.kill()
            self._process.wait()

    def _listen(self, lines):
        for line in lines:
            if reading := parsed(line):
                self._readings.append((time.perf_counter(), reading))

    def since(self, started):
        """The State since that time of time.perf_counter; the newest reading's if there is none since."""
        readings = list(self._readings)
        return joined([reading for at, reading in readings if at >= started] or [reading for _, reading in readings[-1:]])


def parsed(line):
    """A line of nvidia-smi as (MHz, watts, degrees Celsius, bits), each None where unknown; None if it is no reading."""
    cells = [cell.strip() for cell in line.split(",")]
    return tuple(map(_number, cells)) if len(cells) == 1 + FIELDS.count(",") else None


def _number(cell):
    try:
        return int(cell, 16) if cell.startswith("0x") else float(cell)
    except ValueError:
        return None


def joined(readings):
    clocks, powers, temperatures, bits = zip(*readings) if readings else ([], [], [], [])
    seen = 0
    for own in bits:
        seen |= own or 0
    reasons = ", ".join(name for bit, name in REASONS.items() if seen & bit)
    return State(_median(clocks), _median(powers), _median(temperatures), reasons)


def _median(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
