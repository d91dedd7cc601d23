"""The tour of examples/tour.ipynb runs from top to bottom, in one namespace, as Jupyter would run it."""

import json
import os
from pathlib import Path

import pytest

from tests import children
from tests.harness import thorough
from tests.tools.test_docs import exists, links
from tritonkernels import backend

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "examples/tour.ipynb"
CELLS = json.loads(TOUR.read_text())["cells"]

# Prints what Jupyter would show of each cell: what is printed, and the value of its last expression, as HTML if it has that.
JUPYTER = """
import ast, json, sys
namespace = {}
for cell in json.load(open(sys.argv[1])):
    body = ast.parse(cell).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "tour", "exec"), namespace)
    value = eval(compile(ast.Expression(last.value), "tour", "eval"), namespace) if last else None
    html = getattr(value, "_repr_html_", None)
    print("SHOWN " + html() if html else "" if value is None else f"SHOWN {value!r}")
"""


def code(cell):
    return "".join(cell["source"])


@thorough
@pytest.mark.long
@pytest.mark.skipif(backend.device_type() != "cpu", reason="it is what the tour shows without a GPU")
def test_the_tour(tmp_path):
    for module in ("jinja2", "matplotlib"):  # of the report
        pytest.importorskip(module)
    programs = [code(cell) for cell in CELLS if cell["cell_type"] == "code"]
    cells = tmp_path / "cells.json"
    cells.write_text(json.dumps(programs))
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    run = children.run("-c", JUPYTER, cells, cwd=TOUR.parent, env=environment)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr
    shown = [line.removeprefix("SHOWN ") for line in run.stdout.splitlines() if line.startswith("SHOWN ")]
    tables = [text for text in shown if text.startswith("<table")]
    for words in (["backend", "interpreter"], ["c++ compiler"], ["naive", "stream_k"], ["ranking", "bound_by"]):
        assert any(all(f">{word}<" in table for word in words) for table in tables), words
    assert any(">For float16, call matmul.<" in table for table in tables)
    assert any(">because<" in table and ">async_copy<" in table for table in tables)
    for printed in ("def _naive_kernel(", "__global__ void", "gemm on h200 (sm_90), compiled", "0 failed", "tune needs a GPU"):
        assert printed in run.stdout, printed
    (page,) = tmp_path.rglob("report/index.html")
    assert (page.parent / "matmul.html").stat().st_size > 100_000 and f"'{page.as_uri()}'" in shown


def test_it_is_kept_without_outputs():
    """They would differ from machine to machine, and hide what changed."""
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in CELLS if cell["cell_type"] == "code")
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)


def test_its_links_lead_somewhere():
    found = [link for cell in CELLS if cell["cell_type"] == "markdown" for link in links(code(cell))]
    assert found and all(exists(TOUR, link) for link in found)
