"""What a measurement depends on: versions, the commit, the GPU and its clocks. Only reads; changes nothing."""

import datetime
import hashlib
import importlib.metadata
import platform
import shlex
import subprocess
import sys

import torch

from .. import COMMAND, HERE, IS_CHECKOUT, ROOT
from . import kernels

SOURCES = ("tritonkernels", "cuda_reference", HERE.name, *(["tests"] if IS_CHECKOUT else []))
RESULTS = "perf/results"  # in a folder of SOURCES, but not a source


def add_commit(parser):
    parser.add_argument("--commit", metavar="HASH", help="the commit of the sources, for a copy without its git repository")


def environment(device, named=None):
    """The environment of a run's records, as JSON; None where unknown. `named` is the commit, where a user says so."""
    gpu = device.type == "cuda"
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join([*COMMAND.split(), *sys.argv[1:]]),
        "commit": named or revision(),
        "kernels": kernels.digests(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": importlib.metadata.version("triton"),
        "numpy": importlib.metadata.version("numpy"),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if gpu else None,
        "nvcc": _last_line(_output("nvcc", "--version")),
        "device": torch.cuda.get_device_name(device) if gpu else platform.processor() or platform.machine(),
        "driver": gpu_query(device, "driver_version"),
        "clock": {"max_sm_mhz": _number(gpu_query(device, "clocks.max.sm"))},
    }


def revision():
    """The commit, with a hash of the sources where they differ from it, so that different sources never share a name."""
    known = commit()
    return known if known and "+" not in known else f"{(known or 'no-commit').partition('+')[0]}+{digest()}"


def commit():
    """HEAD's hash, followed by "+changes" where the sources differ from it; None outside a repository."""
    if not IS_CHECKOUT:
        return None  # where it is installed may be in some other repository
    head = _last_line(_output("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"))
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--", *SOURCES, f":!{RESULTS}")
    return head and (head if changed == "" else f"{head}+changes")


def digest():
    """A hash of the sources, which needs no git."""
    hashed = hashlib.sha256()
    files = (path.relative_to(ROOT) for folder in SOURCES for path in (ROOT / folder).rglob("*") if path.is_file())
    for path in sorted(path for path in files if "__pycache__" not in path.parts and not path.is_relative_to(RESULTS)):
        hashed.update(str(path).encode() + b"\0" + (ROOT / path).read_bytes())
    return hashed.hexdigest()[:12]


def smi_name(device):
    """The GPU's name for nvidia-smi, which has numbers of its own; None without a GPU."""
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}" if device.type == "cuda" else None


def gpu_query(device, field):
    """A value that nvidia-smi reports of the device, as text; None without a GPU or nvidia-smi."""
    name = smi_name(device)
    if name is None:
        return None
    return _last_line(_output("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", f"--id={name}"))


def _number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _last_line(text):
    lines = (text or "").strip().splitlines()
    return lines[-1] if lines else None


def _output(*command):
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
