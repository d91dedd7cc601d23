"""python -m perf calibrate: measures this GPU's figures, to choose designs by, and keeps them in the user's folder.

They are bandwidths of DRAM and L2, the latency of DRAM, the time of a launch, and FLOP/s on CUDA cores and, by precision, on
tensor cores. It takes half a minute; run it on a GPU that does nothing else. A precision that the GPU lacks is left out, with a
line that says so. The last line says in which file they are kept.

Exit status: 1 if nothing could be measured, 2 without a GPU, for bad arguments or if nothing could be kept.
"""

import argparse
import datetime
import math
import statistics
import sys

import torch

from tritonkernels import backend, calibration
from tritonkernels.calibration import Calibration
from tritonkernels.choice.clock import GpuClock, flushes_to_hide, sample
from tritonkernels.errors import BackendError, TritonKernelsError
from tritonkernels.target import Target

from ..show import table

STEPS = 16  # of the first run, which says how many the others take; a multiple, so that Triton compiles once
LEAST_S = 2e-3  # of a run: the events around it take some microseconds
WARM_S = 0.05  # until clocks and temperatures have settled
SAMPLES = 25
HEADINGS = ("", "measured", "until now", "unit")
UNITS = {  # title, unit, the unit in SI
    "dram_bandwidth": ("DRAM bandwidth, copying", "TB/s", 1e12),
    "l2_bandwidth": ("L2 bandwidth, reading", "TB/s", 1e12),
    "latency": ("latency of DRAM", "ns", 1e-9),
    "launch": ("launch in a CUDA graph", "us", 1e-6),
    "ieee": ("FP32 on CUDA cores", "TFLOP/s", 1e12),
}
SECONDS = ("latency", "launch")  # these figures are seconds, the others something a second


def add_arguments(parser):
    parser.add_argument("--device", type=_index, metavar="N", help="the GPU, as torch counts them; default: the current one")


def _index(text):
    if (index := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"{text} is not the number of a GPU")
    return index


def main(options, parser):
    try:
        device = the_device(options.device)
        calibration.FILE.change(lambda known: known)  # what cannot be written is an error now, not after measuring
        with torch.cuda.device(device):
            return run(Target.live(device), device, GpuClock(device), torch.cuda.mem_get_info(device)[0] // 4)
    except TritonKernelsError as error:
        print(error, file=sys.stderr)
        return 2


def the_device(index):
    """The GPU of that number, or the current one; BackendError if there is none."""
    if not torch.cuda.is_available():
        raise BackendError("calibrate needs a GPU and torch sees none: run it where nvidia-smi or rocm-smi lists one")
    if backend.name() != "gpu":
        raise BackendError("TRITONKERNELS_BACKEND selects the interpreter, which says nothing about the GPU: unset it")
    if index is not None and index >= torch.cuda.device_count():
        raise BackendError(f"there is no GPU {index}: torch sees {torch.cuda.device_count()} and counts from 0 on")
    return torch.device("cuda", torch.cuda.current_device() if index is None else index)


def run(target, device, clock, room):
    """Measure, show and keep the figures; the exit status."""
    figures, left_out = measured(target, device, clock, room)
    rows = []
    for name, value in figures.items():
        title, unit, scale = UNITS.get(name, (f"{name}, tensor cores", "TFLOP/s", 1e12))
        known = {"dram_bandwidth": target.dram_bandwidth, "l2_bandwidth": target.l2_bandwidth, **target.peaks}.get(name)
        rows.append([title, f"{value / scale:.4g}", f"{known / scale:.4g}" if known else "", unit])
    print(f"{target.name}, {target.isa}, {target.sms} SMs")
    table.print_table(HEADINGS, rows)
    for name, why in left_out.items():
        print(f"Left out: {name}: {why}")
    if not figures:
        return 1
    import triton  # its distribution has another name where torch is built for ROCm

    today = datetime.date.today().isoformat()
    found = Calibration(target.name, target.sms, today, triton.__version__, torch.__version__, figures)
    calibration.FILE.change(lambda known: known | {(found.gpu, found.sms): found})
    print(f"Kept in {calibration.FILE.path()}")
    return 0


def measured(target, device, clock, room):
    """({name: figure}, {name: why it is left out})."""
    from .calibrate_kernels import PROBES  # which Triton decorates for the backend, chosen by now

    figures, left_out = {}, {}
    with table.progress(len(PROBES)) as advance:
        for name, probe in PROBES.items():
            advance(name)
            try:
                value = figure(name, probe(target, device, room), clock)
            except Exception as error:  # Triton's, of a precision that the GPU lacks, or the driver's
                left_out[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                continue
            if calibration.is_plausible(name, value, target.sms):
                figures[name] = value
            else:
                least, most = calibration.plausible_range(name, target.sms)
                left_out[name] = f"{value:.3g} cannot be: on {target.sms} SMs it is between {least:.3g} and {most:.3g}"
    return figures, left_out


def figure(name, probe, clock):
    """The figure that the probe measures."""
    first = seconds(probe, STEPS, clock, warm_s=0.0, samples=1)
    steps = STEPS * math.ceil(LEAST_S / max(first, LEAST_S / 4096))
    per_step = seconds(probe, steps, clock, WARM_S, SAMPLES) / steps
    return per_step / probe.amount if name in SECONDS else probe.amount / per_step


def seconds(probe, steps, clock, warm_s, samples):
    """The median GPU time of so many steps."""
    launches = [launch.alone() for launch in probe.launches(steps)]

    def launch():
        for each in launches:
            each.run()

    launch()  # compiles
    run = clock.replay(launch) or launch
    flushes = flushes_to_hide([run], clock)
    until = clock.now() + warm_s
    while clock.now() < until:
        sample(clock, run, flushes)
    return statistics.median(sample(clock, run, flushes)[0] for _ in range(samples)) / 1e3
