"""The README is true: its examples run, its table is the one that the designs generate, its files exist. And style holds."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from perf.gate import gate_text
from perf.render.designs import README, with_table

ROOT = Path(__file__).parents[1]


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


def test_the_table_of_designs_is_up_to_date():
    assert README.read_text() == with_table(README.read_text()), "run: python -m perf designs --write"


@pytest.mark.parametrize("file", gate_text.FILES, ids=lambda file: file.name)
def test_what_the_gate_says_is_up_to_date(file):
    text = file.read_text()
    assert gate_text.BETWEEN.search(text) and text == gate_text.with_lines(text), "run: python -m perf gate --write"


def test_linked_files_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    assert links
    assert all((ROOT / link).exists() for link in links if "://" not in link)


@pytest.mark.skipif(shutil.which("ruff", path=Path(sys.executable).parent) is None, reason="ruff is not installed")
@pytest.mark.parametrize("command", (["check"], ["format", "--check"]), ids=lambda c: c[0])
def test_style(command):
    run = subprocess.run([sys.executable, "-m", "ruff", *command, "."], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_chapter_s_drawings_and_diffs_are_those_of_the_code():
    run = subprocess.run([sys.executable, "-m", "perf", "chapter", "--check"], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, f"{run.stdout}run: python -m perf chapter"
