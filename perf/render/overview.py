"""The tables of all rungs of matmul's ladder in docs/matmul.md: speeds, machine code, and what the memories send."""

import json
import re

from .. import ROOT
from ..measure import measured, records
from ..offline import sass
from ..show import table

CHAPTER = ROOT / "docs" / "matmul.md"
FOLDER = measured.RESULTS / "h200"
FACTS = ("registers", "shared memory", "products", "waits", "instructions")
COUNTERS = ("l2_read_bytes", "dram_read_bytes")
WAITS = ("SYNCS.PHASECHK", "WARPGROUP.DEPBAR", "DEPBAR", "BAR")  # for an mbarrier, wgmma, cp.async, the block's threads


def overview(*words):
    """Each rung's speed relative to cuBLAS in the named cases, and what it adds: the bold words that begin its section."""
    cases = [case for case in measured.suites(FOLDER)["hopper"] if case.name.split()[0] in words]
    page, body = CHAPTER.read_text(), []
    for name in (word for word in words if not word[0].isdigit()):
        adds = re.search(rf"^#+ {name}\n\n\*\*(.+?)\.?\*\*", page, re.MULTILINE)
        found = [{r.design: f"{r.ratio_to_torch:.2f}" for r in case.of(x)} for x in measured.PACKAGES for case in cases]
        body.append([f"[{name}](#{name})", adds[1], *(own.get(name, "-") for own in found)])
    columns = [f"{title}, {case.name.partition('x')[0]}" for title in measured.PACKAGES.values() for case in cases]
    origin = f"Speed relative to cuBLAS. {measured.origin(cases)}."
    return f"{origin}\n\n{table.markdown(['rung', 'it adds', *columns], body)}"


def code(*names):
    """What the compilers make of each rung: registers, shared memory, and the products and waits in the loop over slices."""
    rows = {(row["op"], row["implementation"], row["design"]): row for row in records.read_rows(FOLDER / "code.json")}
    body = []
    for name in names:
        found = (rows.get(("matmul", package, name)) for package in measured.PACKAGES)
        body.append([f"`{name}`", *(cell for row in found for cell in (_facts(row) if row else "-" * len(FACTS)))])
    headings = [heading for title in measured.PACKAGES.values() for heading in (f"{title}: {FACTS[0]}", *FACTS[1:])]
    return table.markdown(["rung", *headings], body)


def counted(gpu):
    """Megabytes that L2 and DRAM send in a call, by the GPU's counters."""
    found = json.loads((measured.RESULTS / gpu / "counters.json").read_text())
    (case,) = {row["case"] for row in found["records"]}
    names = [f"`{row['design']}`" if row["design"] else "cuBLAS" for row in found["records"]]
    body = [[name, *(f"{row[sent] / 1e6:.0f}" for sent in COUNTERS)] for name, row in zip(names, found["records"])]
    taken = found["environment"]
    origin = f"MB that a call of {case.replace('x', ' x ')} reads, CUDA. {taken['device']}, {taken['date'][:10]}."
    return f"{origin}\n\n{table.markdown(['rung', 'from L2', 'from DRAM'], body)}"


def _facts(row):
    counts, shared = row["hot_loop"], f"{row['shared_bytes'] / 1024:.0f} KB"
    products = [f"{count} {opcode.removesuffix('.F32')}" for opcode, count in counts.items() if opcode.startswith(sass.TENSOR)]
    waits = str(sass.count(counts, WAITS))
    return str(row["registers"]), shared, ", ".join(products), waits, str(row["hot_loop_instructions"])
