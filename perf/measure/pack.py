"""python -m perf pack: puts records into perf/results, compressed: those of suites, and the rows of sweeps.

The GPU's folder is the one that they were measured on. SUITE.json becomes SUITE.json.xz there; the rows of sweeps are added to
sweep.jsonl.xz, each once.
"""

from pathlib import Path

from tritonkernels.choice import efficiency

from . import measured, packed, records, sweep_records


def add_arguments(parser):
    parser.add_argument("folder", type=Path, nargs="+", metavar="DIR", help="of files of `perf compare`, `sweep` or `campaign`")


def main(options, parser):
    sweeps = [path for folder in options.folder for path in sweep_records.files(folder)]
    suites = {path: rows for folder in options.folder for path in measured.files(folder) if (rows := records.read_rows(path))}
    if not sweeps and not suites:
        parser.error(f"no records in {', '.join(map(str, options.folder))}")
    for path, rows in suites.items():
        out = _folder(rows[0]["environment"]["device"]) / f"{path.name.removesuffix(packed.SUFFIX)}{packed.SUFFIX}"
        records.write_rows(out, rows)
        print(f"{out}: {len(rows)} rows")
    for device in dict.fromkeys(environment["device"] for path in sweeps for environment, _ in sweep_records.read(path)):
        out = _folder(device) / sweep_records.PACKED
        print(f"{out}: {sweep_records.pack([out, *sweeps], out, device)} rows more")
    return 0


def _folder(device):
    folder = measured.RESULTS / efficiency.gpu_name(device)
    folder.mkdir(exist_ok=True)
    return folder
