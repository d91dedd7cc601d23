"""python -m perf pack: adds the rows of sweeps to the records that are checked in, perf/results/GPU/sweep.jsonl.xz.

The GPU is the one that each row was measured on. Of a row that is there already nothing is added.
"""

from pathlib import Path

from tritonkernels.choice import model

from ..render.measured import RESULTS
from . import sweep_records


def add_arguments(parser):
    parser.add_argument("folder", type=Path, nargs="+", metavar="DIR", help="of files that `perf sweep` has written")


def main(options, parser):
    paths = [path for folder in options.folder for path in sweep_records.files(folder)]
    if not paths:
        parser.error(f"no sweep in {', '.join(map(str, options.folder))}: `perf sweep --out DIR` writes *.jsonl there")
    for device in dict.fromkeys(environment["device"] for path in paths for environment, _ in sweep_records.read(path)):
        packed = RESULTS / model.gpu_name(device) / sweep_records.PACKED
        packed.parent.mkdir(exist_ok=True)
        added = sweep_records.pack([packed, *paths], packed, device)
        print(f"{packed}: {added} rows more")
    return 0
