"""A GPU's figures as `python -m perf calibrate` has measured them, kept in calibration.json next to the tuned table.

The first Target of a live GPU in a process reads the file. choice/model.py says how the figures count.
"""

from dataclasses import dataclass

from .user_file import UserFile, checked

SCHEMA = 1
FIELDS = ("dram_bandwidth", "l2_bandwidth", "latency", "launch")  # of a Target; the other figures are its peaks
PER_CYCLE = {  # of an SM, FLOP or bytes: more than any GPU has, but what a kernel seems to do whose work the compiler removed
    **dict.fromkeys(("ieee", "fp64"), 512),
    "tf32": 8192,
    **dict.fromkeys(("fp16", "bf16"), 16384),
    **dict.fromkeys(("int8", "fp8"), 32768),
    "l2_bandwidth": 256,
}
CLOCK = 3.5e9
LEAST = 1e-5  # of those limits: fp64 without units for it
RANGES = {"dram_bandwidth": (1e9, 1e14), "latency": (5e-8, 1e-4), "launch": (1e-7, 1e-3)}


@dataclass(frozen=True)
class Calibration:
    """gpu: as the driver calls it. figures: bytes a second, seconds, and by precision FLOP/s."""

    gpu: str
    sms: int
    date: str
    triton: str
    torch: str
    figures: dict

    @property
    def peaks(self):
        return {name: value for name, value in self.figures.items() if name not in FIELDS}

    @staticmethod
    def parsed(values):
        """The Calibration of JSON values; ValueError if they are none."""
        found = checked(Calibration, values)
        for name, value in found.figures.items():
            if name not in (*RANGES, *PER_CYCLE):
                raise ValueError(f"there is no figure {name!r:.40}")
            if type(value) not in (int, float) or not is_plausible(name, value, found.sms):
                raise ValueError(f"{name} is {value!r:.40}")
        return found


def plausible_range(name, sms):
    """(least, most) of a figure of a GPU with so many SMs."""
    if name in RANGES:
        return RANGES[name]
    most = PER_CYCLE[name] * CLOCK * sms
    return LEAST * most, most


def is_plausible(name, value, sms):
    least, most = plausible_range(name, sms)
    return least <= value <= most


def by_gpu(entries):
    """{(gpu, SMs): Calibration}; a part of a GPU (MIG) has its name, and fewer SMs."""
    return {(found.gpu, found.sms): found for found in map(Calibration.parsed, entries)}


def _listed(found):
    return [vars(calibration) for calibration in found.values()]


FILE = UserFile("calibration.json", "the table of measured figures", SCHEMA, by_gpu, _listed)


def of(gpu, sms):
    """The Calibration of such a GPU, or None."""
    return FILE.content().get((gpu, sms))
