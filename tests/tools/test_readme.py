"""The README is short and true: its examples run. And the code keeps to its style."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def test_a_newcomer_reads_it_in_minutes():
    assert len(README.read_text().splitlines()) <= 150


def test_the_examples_run_in_order():
    namespace = {}
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)

    a, b, c, image, weight = (namespace[name].double() for name in ("a", "b", "c", "image", "weight"))
    expected = {
        "out": 1.5 * a @ b.t() + 0.5 * c,
        "y": a @ b[0],
        "filtered": torch.nn.functional.conv2d(image, weight, padding="same"),
        "half": a.half().double() @ b.half().double(),
        "tf32": a @ b,
    }
    for name, value in expected.items():
        torch.testing.assert_close(namespace[name].double(), value, atol=0.05 if name == "tf32" else 1e-3, rtol=0)


@pytest.mark.skipif(shutil.which("ruff", path=Path(sys.executable).parent) is None, reason="ruff is not installed")
@pytest.mark.parametrize("command", (["check"], ["format", "--check"]), ids=lambda c: c[0])
def test_style(command):
    run = subprocess.run([sys.executable, "-m", "ruff", *command, "."], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
