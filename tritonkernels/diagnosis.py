"""doctor(): what runs on this machine, without ever raising."""

import importlib.metadata
import platform

import torch

from . import backend
from .errors import TritonKernelsError
from .report import Report


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def diagnose() -> Report:
    """Versions, the backend and the target, as a Report; a fault is reported as its text."""
    report = Report(
        python=platform.python_version(),
        torch=torch.__version__,
        triton=_version("triton"),
        numpy=_version("numpy"),
        gpus=[torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] or "torch sees none",
    )
    try:
        report["backend"] = backend.name()
        kind = backend.device_type()
        device = torch.device(kind, torch.cuda.current_device()) if torch.cuda.is_available() else torch.device(kind)
        target = backend.target(device)
        report["target"] = f"{target.name} ({target.isa}, {target.sms} SMs)" if target.is_gpu else target.name
        if target.is_gpu:
            report["figures"] = target.origin
    except (TritonKernelsError, ImportError, RuntimeError, AssertionError) as error:
        report["fault"] = str(error)
    return report
