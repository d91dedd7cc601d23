"""Break each kernel on purpose and see the suite notice: a copy of the tree, one edit, the tests that must fail.

    python -m tests.mutants.run [--fast] [WORD ...]      only mutants whose name holds one of the words

Exit status 1 if a mutant survives.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .catalogue import MUTANTS

ROOT = Path(__file__).parents[2]
SUITE = (
    "tests/test_language.py",
    "tests/test_designs.py",
    "tests/test_offsets.py",
    "tests/test_special_values.py",
    "tests/test_gemv.py",
    "tests/test_conv2d.py",
    "tests/test_implicit_gemm_cuda.py",
    "tests/test_implicit_gemm.py",
    "tests/test_winograd.py",
    "tests/test_grouped.py",
    "tests/test_conv2d_gradients.py",
    "tests/test_conv2d_choice.py",
    "tests/test_prefetched_cuda.py",
    "tests/test_grouped_cuda.py",
    "tests/test_planes.py",
    "tests/test_refusals_of_fp16x3.py",
    "tests/test_plans.py",
    "tests/test_wgmma_tma.py",
    "tests/test_tma_stores.py",
    "tests/test_nothing_to_add.py",
    "tests/test_fences.py",
    "tests/memory/test_memory.py",
    "tests/simt/test_races.py",
)


def copy_of_the_tree(folder):
    for name in ("tritonkernels", "cuda_reference", "perf", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def killer(mutant, folder):
    """What noticed the mutant, in words; None if nothing did. `folder` holds a copy of the tree and gets it back unbroken."""
    path = folder / mutant.path
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: its text stands {text.count(mutant.old)} times in {mutant.path}")
    path.write_text(text.replace(mutant.old, mutant.new))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--timeout=120",
        "-k",
        mutant.tests,
        *SUITE,
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "TRITONKERNELS_CACHE": str(folder / "cache")}
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    finally:
        path.write_text(text)
    if run.returncode == 0:
        return None
    if failed := re.search(r"^(?:FAILED|ERROR) \S*::(.*?)(?: - |$)", run.stdout, re.MULTILINE):
        return failed[1]
    if run.returncode < 0:
        return f"a crash, signal {-run.returncode}"
    raise RuntimeError(f"{mutant.name}: the tests did not run: {run.stdout[-2000:]}{run.stderr[-2000:]}")


def main(words):
    fast = "--fast" in words
    words = [word for word in words if word != "--fast"]
    chosen = [m for m in MUTANTS if (m.fast or not fast) and (not words or any(word in m.name for word in words))]
    survivors = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of_the_tree(folder)
        for mutant in chosen:
            start = time.monotonic()
            by = killer(mutant, folder)
            survivors += [] if by else [mutant]
            print(
                f"{'killed  ' if by else 'SURVIVED'} {mutant.name}: {by or mutant.tests} ({time.monotonic() - start:.0f} s)",
                flush=True,
            )
    print(f"{len(chosen)} mutants, {len(chosen) - len(survivors)} killed, {len(survivors)} survived")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
