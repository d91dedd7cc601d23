"""The examples run, and write what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.harness import DEVICES, short, thorough
from tritonkernels import backend

ROOT = Path(__file__).parents[2]
on_devices = pytest.mark.parametrize("device", DEVICES)


def example(name, *arguments):
    """Run examples/name.py as it says, where nothing is installed; it must succeed."""
    assert f"    PYTHONPATH=. python examples/{name}.py " in (ROOT / f"examples/{name}.py").read_text()
    command = [sys.executable, f"examples/{name}.py", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": "."})
    assert run.returncode == 0, run.stdout + run.stderr
    return run


def test_filter_image(tmp_path):
    from matplotlib import image

    image.imsave(tmp_path / "picture.png", torch.rand(24, 32, 3).numpy())
    run = example("filter_image", tmp_path / "picture.png", "--out", tmp_path / "new/folder")
    distances = re.findall(r"at most (\S+) from torch", run.stdout)
    assert len(distances) == 2 and all(float(far) < 1e-5 for far in distances), run.stdout
    for name in ("blur", "edges"):
        assert image.imread(tmp_path / f"new/folder/{name}.png").shape[-1] == 4 and name in run.stdout


@thorough
def test_tensor_parallel():
    """On CPUs: the losses on two processes are those on one."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command += [ROOT / "examples/tensor_parallel.py", "--steps", "3"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert run.returncode == 0, run.stderr
    steps = re.findall(r"loss (\S+) on 2 processes, (\S+) on one", run.stdout)
    assert len(steps) == 3 and all(abs(float(many) - float(one)) < 1e-4 for many, one in steps), run.stdout
    assert float(steps[2][0]) < float(steps[0][0])


@pytest.mark.parametrize("package", ("cuda_reference", "tritonkernels"))
@pytest.mark.parametrize("name", ("resnet", "transformer"))
@on_devices
@short(lambda device: device == "cuda")
def test_training(name, package, device):
    """A few steps; the interpreter takes seconds for one."""
    steps = "60" if device == "cuda" else "3" if package == "cuda_reference" else "1"
    if device == "cpu" and package == "tritonkernels" and backend.device_type() != "cpu":
        pytest.skip("the Triton designs run on the GPU here")
    run = example(name, "--steps", steps, "--device", device, "--package", package)
    assert "swapped" in run.stdout and f"({package})" in run.stdout and "left" not in run.stdout
