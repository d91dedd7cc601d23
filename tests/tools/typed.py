"""Type checks what users see, by basedpyright: the public modules (pyproject.toml lists them), the examples, and every snippet
of Python in the README and the docs, each page in one file, as a reader would run it.

    python -m tests.tools.typed    # what `make lint` runs
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SNIPPETS = ROOT / "build/snippets"
FENCED = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def snippets(page):
    """The Python of a page or a notebook, in its order."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text())["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return FENCED.findall(page.read_text())


def pages():
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("examples/*.ipynb"))]


def check(folder, *options):
    """basedpyright in a folder, with the settings that it finds there, for the packages that this Python has."""
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def main():
    shutil.rmtree(SNIPPETS, ignore_errors=True)
    SNIPPETS.mkdir(parents=True)
    for page in pages():
        if found := snippets(page):
            (SNIPPETS / f"{page.stem.lower()}.py").write_text("\n".join(found))
    run = check(ROOT)
    print(run.stdout + run.stderr, end="")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
