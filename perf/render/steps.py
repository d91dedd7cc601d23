"""The ladder of tensor cores in docs/matmul.md: what each rung reaches on random products, and the machine code behind it.

Each table is of one kind of the products of `perf sweep`, so that its means are not of a mixture: single products of multiples
of 8, to which nothing is added. The rungs are judged by those of the class "16-bit large", where one that keeps tensor cores
busier pays; `few` has those of few tiles, which are for splits of K, `planes` those in tf32x3.
"""

import functools
import itertools
import json
import math
import statistics

from cuda_reference.matmul.parts.fitted import that_fill_waves
from cuda_reference.matmul.persistent import IN_CLUSTERS, SPACE, sharers_of_slices
from tritonkernels.launch import LIBRARY
from tritonkernels.matmul.parts.work import lines_of_rows
from tritonkernels.target import Target

from ..measure import counters, records
from ..offline import sass
from . import charts, figures, measured, table
from .measured import PACKAGES
from .picture import Picture

LEAST = 400, 2e9  # of a large product: its sizes and FLOP
FEW = 66, 1024  # tiles of 128 x 128 at most, half the SMs of an H200, and a K of this at least
SPLITTING = ("persistent", "warp_specialized", "split_k", "stream_k", "cluster_split_k")
PRECISIONS = ("fp16", "bf16")
PLANES = ("planes", "fused_planes", "wgmma_planes")
KINDS = {  # of products in tf32x3
    "K of 4096 and more": lambda problem: problem.k >= 4096,
    "shorter, of 0.5 GFLOP and more": lambda problem: problem.k < 4096 and problem.flops >= 5e8,
    "smaller": lambda problem: problem.k < 4096 and problem.flops < 5e8,
}
WORKLOADS = {
    "16 bits, less than 2 GFLOP": (PRECISIONS, lambda problem: problem.flops < 2e9),
    "16 bits, 2 to 20 GFLOP": (PRECISIONS, lambda problem: 2e9 <= problem.flops < 2e10),
    "16 bits, more": (PRECISIONS, lambda problem: problem.flops >= 2e10),
    "tf32, less than 5 GFLOP": (("tf32",), lambda problem: problem.flops < 5e9),
    "tf32, more": (("tf32",), lambda problem: problem.flops >= 5e9),
    "fp8, less than 5 GFLOP": (("fp8",), lambda problem: problem.accumulate == "fp32" and problem.flops < 5e9),
    "fp8, more": (("fp8",), lambda problem: problem.accumulate == "fp32" and problem.flops >= 5e9),
}
SIZES = {(config["BM"], config["BN"]) for config in (*SPACE, *IN_CLUSTERS)}
ENOUGH = 3  # configs of other designs, of which the ranking's first are most
LIBRARIES = dict(zip(PACKAGES, ("tritonkernels", "cuda_reference")))


def is_large(problem):
    return min(_sides(problem)) >= LEAST[0] and problem.flops >= LEAST[1]


def products(folder, wanted=is_large, precisions=PRECISIONS):
    """The rows of the sweep's products of one kind, which torch has times of, too."""
    rows = (row for row in measured.swept(folder, "matmul") if row.torch and row.problem.precision in precisions)
    return [row for row in rows if is_single(row.problem) and _is_of_eights(row.problem) and wanted(row.problem)]


def is_single(problem):
    """Whether it is one product to which nothing is added."""
    return problem.batch == 1 and problem.beta == 0 and not problem.bias and problem.activation is None


def _is_of_eights(problem):
    return all(side % 8 == 0 for side in _sides(problem))


def _sides(problem):
    return problem.m, problem.n, problem.k


def of_few_tiles(problem):
    tiles = problem.batch * -(-problem.m // 128) * -(-problem.n // 128)
    return tiles <= FEW[0] and problem.k >= FEW[1]


def speeds(rows, package):
    """{design: [its fastest config's speed relative to torch, or None, for each row]}, in the ladder's order."""
    found = {}
    for name in (rung.name for rung in LIBRARY.operation("matmul").own):
        best = [min((t[2] for t in row.times.get(LIBRARIES[package], ()) if t[0] == name), default=None) for row in rows]
        if any(best):
            found[name] = [row.torch[1] / us if us else None for row, us in zip(rows, best)]
    return found


def ladder(folder):
    """The Picture of all rungs; None without records."""
    rows = products(folder)
    if not rows:
        return None
    by_package = {package: speeds(rows, package) for package in PACKAGES}
    names = [rung.name for rung in LIBRARY.operation("matmul").own if any(rung.name in own for own in by_package.values())]
    dots = {
        name: {package: [figures.short(x) for x in own.get(name, ()) if x] for package, own in by_package.items()}
        for name in names
    }
    title = "matmul's designs on random products of the class '16-bit large'"
    origin = measured.origin_in([row.environment for row in rows])
    return Picture(charts.spans, {"title": title, "origin": origin, "rows": dots, "label": figures.AGAINST.format("cuBLAS")})


def step(*names):
    """A rung's table: its speed, what it gains over the one before, and its hot loop. names: [the rung before,] the rung."""
    folder = measured.RESULTS / "h200"
    rows, name, before = products(folder), names[-1], names[0] if len(names) > 1 else None
    code = {
        (row["implementation"], row["design"]): row
        for row in records.read_rows(folder / "code.json")
        if row["op"] == "matmul" and "hot_loop" in row
    }
    body = [_of_package(package, title, speeds(rows, package), name, before, code) for package, title in PACKAGES.items()]
    headings = ["", "relative to cuBLAS", f"to `{before}`", "shapes", "registers", "shared memory"]
    headings += ["the hot loop's products", "of its instructions"]
    kept = [i for i in range(len(headings)) if before or i != 2]
    return table.markdown([headings[i] for i in kept], [[row[i] for i in kept] for row in body if row])


def few(gpu):
    """The table of the designs that split K, on products of few tiles: speed, and gain over split_k where both were timed."""
    rows, body = products(measured.RESULTS / gpu, of_few_tiles), []
    for package, title in PACKAGES.items():
        of_designs = speeds(rows, package)
        for name in SPLITTING:
            own = of_designs.get(name, [])
            gains = [x / y for x, y in zip(own, of_designs.get("split_k", ())) if x and y]
            timed = [x for x in own if x]
            if timed:
                body.append([title, f"`{name}`", mean(timed), mean(gains), str(len(timed))])
    return table.markdown(["", "design", "relative to cuBLAS", "to `split_k`", "shapes"], body)


def clusters(gpu):
    """The table of what blocks that share slices gain over blocks alone, by CUDA's tile, where both were timed: on operands
    whose rows begin at sectors of L2, and on others."""
    gains = {}
    for row in products(measured.RESULTS / gpu):
        times = {json.dumps(t[1]): t[2] for t in row.times.get(LIBRARIES["cuda"], ()) if t[0] == "persistent"}
        alone = {_tile(json.loads(text)): us for text, us in times.items() if "CLUSTER" not in text}
        begin_within = max(lines_of_rows(row.problem)) > 1
        for text, us in times.items():
            config = json.loads(text)
            if "CLUSTER" in config and (config["BM"], config["BN"]) in SIZES and _tile(config) in alone:
                shape = sharers_of_slices(config)[::-1]
                of_tile = gains.setdefault((shape, config["BM"], config["BN"]), ([], []))
                of_tile[begin_within].append(alone[_tile(config)] / us)
    body = []
    for ((down, across), bm, bn), both in sorted(gains.items(), key=lambda item: (math.prod(item[0][0]), item[0])):
        sent = _share_sent({"BM": bm, "BN": bn, "CLUSTER": down * across, "SHARE_A": across})
        figures_of_both = ((mean(own), f"{max(own):.2f}", str(len(own))) if own else ("-", "-", "0") for own in both)
        body.append([f"{bm} x {bn}", f"{down} x {across}", f"{sent:.2f}", *itertools.chain(*figures_of_both)])
    headings = [
        "tile",
        "blocks",
        "what L2 sends",
        *("alone / cluster", "most", "shapes"),
        *("within sectors", "most", "shapes"),
    ]
    return table.markdown(headings, body)


def specialized(gpu):
    """The table of Triton's warp_specialized beside the fastest of its other designs."""
    return beside_others(
        gpu, "tritonkernels", "`warp_specialized`", lambda problem, design, config: design == "warp_specialized"
    )


def fitted(gpu):
    """The table of what CUDA's tiles that fill whole waves add to all other configs."""
    target = Target.named(gpu)

    def fills_waves(problem, design, config):
        return design == "persistent" and _sizes(config) in _that_fill_waves(problem, target)

    return beside_others(gpu, "cuda_reference", "with whole waves", fills_waves, least=ENOUGH, added=True)


def _sizes(config):
    return tuple(config.get(name) for name in ("BM", "BN", "CONSUMERS", "STAGES", "CLUSTER", "SHARE_A", "SWAPPED"))


@functools.cache
def _that_fill_waves(problem, target):
    return {_sizes(config) for config in that_fill_waves(problem, target, SPACE)}


def beside_others(gpu, package, title, is_own, least=1, added=False):
    """A table of the fastest config of the others and of those that are own, is_own(problem, design, config), or if they are
    `added` of all, where at least so many of the latter were timed, and enough of the former."""
    body = []
    for workload, (precisions, wanted) in WORKLOADS.items():
        both = []
        for row in products(measured.RESULTS / gpu, wanted, precisions):
            own, others = [], []
            for design, config, us, _ in row.times.get(package, ()):
                (own if is_own(row.problem, design, config) else others).append(us)
            if len(own) >= least and len(others) >= ENOUGH:
                both.append((row.torch[1] / min(others), row.torch[1] / min(own + others if added else own)))
        if both:
            gains = [new / old for old, new in both]
            won = f"{sum(gain > 1 for gain in gains)} of {len(gains)}"
            body.append([workload, *map(mean, zip(*both)), mean(gains), f"{min(gains):.2f}", f"{max(gains):.2f}", won])
    return table.markdown(["", "the others' best", title, "gain", "least", "most", "won"], body)


def _tile(config):
    """What a config of blocks alone and one of clusters have in common."""
    return json.dumps({name: value for name, value in config.items() if name not in ("CLUSTER", "SHARE_A", "BLOCKS")})


def planes(gpu):
    """The table of CUDA's designs of tf32x3 beside torch's fp32 product, where all of them were timed."""
    body = []
    for kind, wanted in KINDS.items():
        of_designs = speeds(products(measured.RESULTS / gpu, wanted, ("tf32x3",)), "cuda")
        together = [own for own in zip(*(of_designs.get(name, ()) for name in PLANES)) if all(own)]
        if together:
            body.append([kind, *map(mean, zip(*together)), str(len(together))])
    return table.markdown(["product", *(f"`{name}`" for name in PLANES), "shapes"], body)


def _share_sent(config):
    """Of what L2 sends to blocks alone."""
    share_a, share_b = sharers_of_slices(config)
    return (config["BM"] / share_a + config["BN"] / share_b) / (config["BM"] + config["BN"])


def sent(gpu):
    """The table of what L2 and DRAM send for `perf counters`' products, by tile; "by arithmetic": what tiles ask L2 for."""
    written = json.loads((measured.RESULTS / gpu / "counters.json").read_text())
    body = []
    for row in written["records"]:
        config, counts = row["config"], [_gigabytes(row[name]) for name in counters.COUNTERS]
        if config is None:
            body.append([row["case"], "cuBLAS", "-", "-", *counts])
        else:
            cluster = config.get("CLUSTER", 1)
            tile = f"{config['BM']} x {config['BN']}"
            body.append([row["case"], tile, str(cluster), _gigabytes(_asked(row["case"], config, cluster)), *counts])
    headings = ["product", "tile", "blocks of a cluster", "L2 by arithmetic", "L2 reads", "L2 to SMs", "DRAM reads"]
    return f"{measured.origin_in([written['environment']])}\n\n{table.markdown(headings, body)}"


def _asked(case, config, cluster):
    """Bytes of 16-bit operands in all slices of all tiles: a cluster's tiles share those of one."""
    (m, n, k), (bm, bn) = map(int, case.split()[0].split("x")), (config["BM"], config["BN"])
    rows = (bm + bn) * _share_sent(config | {"CLUSTER": cluster})
    return -(-m // bm) * -(-n // bn) * rows * k * 2


def _gigabytes(count):
    return f"{count / 1e9:.2f} GB"


def mean(ratios):
    return f"{statistics.geometric_mean(ratios):.2f}" if ratios else "-"


def _of_package(package, title, speeds, name, before, code):
    """None where the package has no such design."""
    if name not in speeds and (package, name) not in code:
        return None
    own = speeds.get(name, [])
    timed = [x for x in own if x]
    gains = [x / y for x, y in zip(own, speeds.get(before, ())) if x and y]
    facts = code.get((package, name))
    return [title, mean(timed), mean(gains), str(len(timed)), *(_code(facts) if facts else ["-"] * 4)]


def _code(facts):
    loop = facts["hot_loop"]
    products = [f"{count} {opcode}" for opcode, count in loop.items() if opcode.startswith(sass.TENSOR)]
    shared = f"{facts['shared_bytes'] / 1024:.0f} KB"
    return [str(facts["registers"]), shared, ", ".join(products) or "-", str(facts["hot_loop_instructions"])]
