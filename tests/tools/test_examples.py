"""The examples run, and write what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]


def test_filter_image(tmp_path):
    from matplotlib import image

    image.imsave(tmp_path / "picture.png", torch.rand(24, 32, 3).numpy())
    command = [sys.executable, ROOT / "examples/filter_image.py", tmp_path / "picture.png", "--out", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert run.returncode == 0, run.stderr
    distances = re.findall(r"at most (\S+) from torch", run.stdout)
    assert len(distances) == 2 and all(float(far) < 1e-5 for far in distances), run.stdout
    for name in ("blur", "edges"):
        assert image.imread(tmp_path / f"{name}.png").shape[-1] == 4 and name in run.stdout


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
