"""What the report shows, as plain data, from a folder of records of one GPU: every timed case, each number with its origin."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tritonkernels import OPS
from tritonkernels.errors import BackendError
from tritonkernels.launch import LIBRARY
from tritonkernels.problem import Problem
from tritonkernels.target import Target

from ...fit.choice_page import named
from ...measure import class_table, measured, packed, records, sweep_records
from ...measure.contenders import PACKAGES as LIBRARIES
from ...measure.measured import PACKAGES
from ...measure.models import table as models
from ...offline import sass
from .. import noise

IMPLEMENTATIONS = {library: implementation for implementation, library in LIBRARIES.items()}
KINDS = {"math": sass.MATH, "shared": sass.SHARED, "global": (*sass.GLOBAL, *sass.LOCAL)}  # instructions of a hot loop


class Origin(NamedTuple):
    """Where numbers come from."""

    device: str
    date: str
    commit: str
    torch: str
    triton: str
    cuda: str
    driver: str
    command: str


@dataclass(frozen=True)
class Result:
    """The fastest design of a package in a case."""

    package: str
    design: str
    ms: float
    spread: tuple[float, float] | None  # the 20th and 80th percentile
    torch_ms: float | None  # torch's fastest in the same run; None where it has no such function
    verdict: str  # "ahead", "even", "behind", or "alone" without torch's time
    origin: int  # the number of its Origin, from 1

    @property
    def ratio(self):
        """torch's time over this one's."""
        return self.torch_ms / self.ms if self.torch_ms else None


@dataclass(frozen=True)
class Case:
    """A problem that was timed: by the cases of a suite, or by a sweep over random shapes."""

    name: str
    op: str
    group: str  # the suite and precision, or the family of random shapes
    arithmetic: str
    problem: Problem
    results: dict[str, Result]  # by implementation


@dataclass(frozen=True)
class Code:
    """A design's machine code, compiled for the GPU: facts of `perf inspect`, and the origin of them."""

    op: str
    package: str
    design: str
    facts: dict
    origin: int

    @property
    def mix(self):
        """{kind of instruction: its share of the hot loop}"""
        total, loop = self.facts["hot_loop_instructions"], self.facts["hot_loop"]
        shares = {kind: sass.count(loop, opcodes) / total for kind, opcodes in KINDS.items()} if total else {}
        return shares | {"other": 1 - sum(shares.values())}

    @property
    def config(self):
        return " ".join(f"{name}={value}" for name, value in self.facts["config"].items() if name != "num_ctas")


@dataclass
class Gpu:
    """All that a folder of records tells of a GPU."""

    name: str
    folder: Path
    target: Target | None  # None for a GPU whose figures are not known
    suites: dict[str, list[measured.Case]]
    classes: list[class_table.ClassResult]
    models: list[dict]  # rows of `perf models`
    cases: list[Case] = field(default_factory=list)
    drawn: list[Case] = field(default_factory=list)  # of the classes, which are their groups
    origins: list[Origin] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)  # (what gave no result, why)
    codes: list[Code] = field(default_factory=list)

    @property
    def trust(self):
        """How far its times can be trusted, in sentences."""
        return noise.of(self.folder)

    @property
    def ops(self):
        """The operations with results or machine code."""
        found = {own.op for own in (*self.cases, *self.codes)}
        return [op for op in OPS if op in found]

    def counts(self, op):
        """(package, {verdict: how many}) of each package with results of the operation."""
        for package, title in PACKAGES.items():
            own = [case.results[package] for case in self.cases if case.op == op and package in case.results]
            if own:
                yield title, Counter(r.verdict for r in own)

    def origin(self, environment):
        """The number of the environment's Origin."""
        own = Origin(*(str(environment.get(name) or "") for name in Origin._fields))
        if own not in self.origins:
            self.origins.append(own)
        return self.origins.index(own) + 1


def gpus(root):
    """The Gpu of each folder of records: of `root` itself if it has files of them, else of its folders."""
    folders = [root] if any(root.glob("*.json*")) else measured.gpus(root)
    return [own for own in map(gpu, folders) if own.cases or own.classes or own.models]


def home(op, design):
    """(operation, design) of the design's own files, which may be those of another operation."""
    operation = LIBRARY.operation(op)
    lender = operation if operation.own else operation.reductions[0].operation
    return tuple(design.split(".")) if "." in design else (lender.name, design)


def gpu(folder):
    suites, sweep, drawn, of_models = measured.suites(folder), _sweep(folder), measured.drawn(folder), models.rows_of(folder)
    devices = [cases[0].vendor.target for cases in suites.values()] + [e["device"] for e, _ in sweep.values()]
    devices += [r.target for r in drawn] + [row["environment"]["device"] for row in of_models]
    name = devices[0] if devices else ""
    own = Gpu(name, folder, known(name), suites, class_table.of_records(drawn), of_models)
    for suite, cases in suites.items():
        for op in dict.fromkeys(case.op for case in cases):
            for group, part in measured.parts(suite, [case for case in cases if case.op == op]).items():
                own.cases += [_of_suite(own, case, group) for case in part]
    shapes = {}
    for (key, package), (environment, row) in sweep.items():
        shapes.setdefault(key, {})[IMPLEMENTATIONS[package]] = environment, row
    random = filter(None, (_of_sweep(own, key, rows) for key, rows in shapes.items()))
    own.cases += sorted(random, key=lambda case: case.problem.flops)
    own.drawn += [_of_suite(own, case, group) for group, case in _judged(own.classes)]
    own.missing += _failures(folder)
    own.codes += _codes(own)
    own.cases.sort(key=lambda case: OPS.index(case.op))
    return own


def known(name):
    try:
        return Target.named(name)
    except BackendError:
        return None


def _judged(results):
    """(class, measured.Case) of each case of the classes for which there is a ratio."""
    for result in results:
        cases = {}
        for judged in (judged for side in result.packages.values() for judged in side.cases):
            cases.setdefault((judged.record.seed, judged.record.case), []).append(judged)
        for own in cases.values():
            record, vendor = own[0].record, own[0].vendor
            designs = [judged.record for judged in own]
            yield result.class_.name, measured.Case(record.case, record.op, record.precision, vendor, designs)


def _of_suite(gpu, case, group):
    vendor, results = case.vendor, {}
    for package in PACKAGES:
        if best := case.best(package):
            results[package] = Result(
                package=PACKAGES[package],
                design=best.design,
                ms=best.median_ms,
                spread=(best.p20_ms, best.p80_ms),
                torch_ms=vendor.median_ms,
                verdict=case.verdict(best),
                origin=gpu.origin(best.environment),
            )
    problem = sweep_records.problem_of(case.op, vendor.problem)
    return Case(case.name, case.op, group, case.arithmetic, problem, results)


def _sweep(folder):
    """{(shape, package): (environment, row)}; of what was measured again the last."""
    found = {}
    for path in sweep_records.files(folder):
        for environment, row in sweep_records.read(path):
            key = sweep_records.key_of(row["op"], row["problem"]), environment["device"]
            found[key, row["package"]] = environment, row
    return found


def _of_sweep(gpu, key, rows):
    """The Case of a random shape; None without any time."""
    results = {}
    for package, (environment, row) in rows.items():
        problem, family = sweep_records.problem_of(row["op"], row["problem"]), row["family"]
        if not row["times"]:
            gpu.missing.append((f"{named(problem)}, {PACKAGES[package]}", row.get("fault") or "no right result"))
            continue
        design, _, us, *_ = min(row["times"], key=lambda time: time[2])
        torch_us = row["torch"] and row["torch"][1]
        results[package] = Result(
            package=PACKAGES[package],
            design=design,
            ms=us / 1e3,
            spread=None,
            torch_ms=torch_us and torch_us / 1e3,
            verdict="alone" if torch_us is None else "ahead" if us < torch_us else "behind",
            origin=gpu.origin(environment),
        )
    if not results:
        return None
    kind = measured.arithmetic(row["problem"]["dtype"], problem.precision)
    name = named(problem).removeprefix(f"{problem.op} {problem.precision} ")
    return Case(name, problem.op, f"random shapes: {family}", kind, problem, results)


def _codes(gpu):
    """The Code of each design in code.json, twins side by side."""
    file = gpu.folder / "code.json"
    rows = records.read_rows(file) if packed.find(file).exists() else []
    ladder = list(dict.fromkeys((row["op"], row["design"]) for row in rows))
    for row in sorted(rows, key=lambda row: ladder.index((row["op"], row["design"]))):
        if "fault" not in row:
            environment = row["environment"] | {
                "cuda": re.sub(r".*cuda_([\d.]+)\.r.*", r"\1", row["environment"]["nvcc"] or "")
            }
            yield Code(row["op"], PACKAGES[row["implementation"]], row["design"], row, gpu.origin(environment))


def _failures(folder):
    """(what, why) of each row of `perf compare` that is not right, of ours and torch's."""
    for path in measured.files(folder):
        for r in records.read_json(path):
            if not r.ok and not r.is_peer:
                yield f"{r.op} {r.case}, {r.implementation} {r.design}", r.message or "not within its bound"
