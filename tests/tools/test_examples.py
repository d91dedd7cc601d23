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
