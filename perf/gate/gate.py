"""python -m perf gate: runs every check on this machine's GPU, in steps of under 8 minutes each.

build and calls build the kernels and make the smallest, ragged and empty calls of every design; memcheck repeats them under
compute-sanitizer, racecheck and synccheck those of the CUDA designs, consan and gsan those of Triton designs that order memory
accesses themselves under Triton's own sanitizers; tests and around run all GPU tests, but for large, those of operands beyond
2^31 elements, and two_gpus, which need two GPUs. Most are divided by operation: calls-gemm, tests-matmul-1of6. With several
GPUs, steps run in parallel on different GPUs.

The outcome of each step is written at once to perf/results/GPU/gate.json, which has a record for each Triton: the one that
Python finds is used. A passed step is not repeated as long as nothing that it depends on has changed: the kernels and the host
code of its operation, what all share, its tests; nor the versions and the GPU. Logs are in build/gate. `make docs` writes the
outcome into the docs, on any machine.

--package tritonkernels leaves out what no Triton can change, the kernels of cuda_reference: for a second Triton on a GPU.
--quick leaves out the cases that `make test` does. The record says so; a step counts only for runs that leave out as much.
--minutes 9 ends within that time: it begins the longest steps that fit, and cuts off one that takes longer than expected.

Exit status: 0 if every step that this machine can run has passed, 1 if not, 2 without a GPU or for bad arguments.
"""

import datetime
import queue
import re
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace

import torch

from tritonkernels import backend
from tritonkernels.target import namesakes

from .. import processes
from ..measure import environment, kernels
from ..show import table
from . import gate_steps, plan, shown, sources

LIMIT = 470  # seconds of a step
EVERY = 15  # seconds between lines of progress
# An outcome is valid while these are unchanged, and what its step depends on (sources.py).
KEY = ("gpu", "python", "torch", "triton", "numpy", "cuda", "nvcc")
QUICK = "the cases that make test leaves out"


@dataclass
class Outcome:
    status: str  # "passed", "failed" or "skipped"
    commit: str
    date: str
    command: str
    driver: str | None
    digest: str = ""  # of what the step depends on
    used: list[str] = field(default_factory=list)  # the operations that its tests used
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)
    note: str = ""


def add_arguments(parser):
    parser.add_argument(
        "--step", action="append", metavar="NAME", help="only this step, or all of a check or an operation; may be repeated"
    )
    parser.add_argument("--again", action="store_true", help="also repeat passed steps")
    parser.add_argument(
        "--package", choices=("tritonkernels",), help="leave out cuda_reference, whose kernels are the same with every Triton"
    )
    parser.add_argument("--quick", action="store_true", help="leave out the cases of tests that make test leaves out")
    parser.add_argument("--minutes", type=float, metavar="N", help="end after N minutes; first the longest steps that fit")
    environment.add_commit(parser)


def main(options, parser):
    if not torch.cuda.is_available() or backend.device_type() != "cuda":
        why = "torch sees none" if not torch.cuda.is_available() else "TRITONKERNELS_BACKEND selects the interpreter"
        print(f"gate needs a GPU, and {why}", file=sys.stderr)
        return 2
    logs = environment.ROOT / "build/gate"
    every = gate_steps.steps(logs, options.package, options.quick)
    names = {s.name: {s.name, *filter(None, plan.parts(s.name)[:2])} for s in every}
    chosen = [s for s in every if not options.step or names[s.name] & {*options.step}]
    if unknown := {*(options.step or ())} - set().union(*names.values()):
        allowed = dict.fromkeys(name for s in every for name in (*plan.parts(s.name)[:2], s.name) if name)
        parser.error(f"--step: got {', '.join(sorted(unknown))}; allowed: {', '.join(allowed)}")
    logs.mkdir(parents=True, exist_ok=True)
    about = _about(options)
    gate = Gate(shown.RESULTS / _folder(about["gpu"]) / "gate.json", about, [s.name for s in every], options.minutes)
    with _ended_by_sigterm():
        gate.run_all(chosen, options.again)
    gate.show()
    return 0 if all(gate.is_done(s.name) for s in chosen) else 1


def _folder(gpu):
    """Where a GPU's records are, by the name that its driver has: the name of its namesake in the table of targets, if any."""
    known = [target.name for target in namesakes(gpu)]
    return (known or [re.sub(r"\W+", "_", gpu.lower().removeprefix("nvidia ")).strip("_")])[0]


def _about(options):
    """KEY's values, and others for the reader."""
    facts = environment.environment(torch.device("cuda", 0))
    named = options.commit or environment.commit() or "no-commit"
    stable = {name: facts[name] for name in ("command", "driver", "python", "torch", "triton", "numpy", "cuda", "nvcc")}
    left_out = [*["cuda_reference"] * bool(options.package), *[QUICK] * options.quick]
    return stable | {"gpu": facts["device"], "commit": named, "left_out": left_out}


class Gate:
    """The outcomes on a GPU with one Triton, kept in a file with those of others."""

    def __init__(self, path, about, names, minutes=None):
        self._path, self._about, self._names = path, about, names
        self._deadline = time.monotonic() + 60 * minutes if minutes else float("inf")
        self._keeping, self._ended_by = threading.Lock(), None
        self._gpus = queue.Queue()  # the free ones
        for gpu in processes.gpus():
            self._gpus.put(gpu)
        records = shown.read(path)
        before = records.get(about["triton"], {})
        self._last_passed = before.get("last_passed")
        for name in names:
            sources.digest(name)  # of now: they may change while steps run
        self._took = {}  # seconds of a step when it last ended, whatever it ran on
        for record in (*records.values(), before):
            ended = {name: entry["seconds"] for name, entry in record.get("steps", {}).items() if entry["status"] == "passed"}
            self._took |= record.get("took", {}) | ended
        same = all(before.get(name) == about[name] for name in KEY)
        # Also those of steps that only other options have; none of earlier gates, which had no digests.
        kept = {name: entry for name, entry in before.get("steps", {}).items() if name in names or entry.get("digest")}
        self.outcomes = {name: Outcome(**entry) for name, entry in kept.items()} if same else {}

    def holds(self, name):
        """Whether the step has passed, with all that the plan wants of it, and nothing that it depends on has changed since."""
        known = self.outcomes.get(name)
        whole = known is not None and known.status == "passed" and {*known.left_out} <= {*self._about["left_out"]}
        return whole and known.digest == sources.digest(name, known.used)

    def _is_red(self, name):
        known = self.outcomes.get(name)
        return known is not None and bool(known.failures) and known.digest == sources.digest(name, known.used)

    def is_done(self, name):
        """Whether it holds, or cannot run here."""
        return self.holds(name) or (name in self.outcomes and self.outcomes[name].status == "skipped")

    def run_all(self, steps, repeat=False):
        """First the steps that need the whole machine, one by one; then the others in parallel, as many as there are GPUs, the
        longest first, which also fills the time that there is; last those that failed, since when nothing has changed."""
        steps = sorted(steps, key=lambda step: (self._is_red(step.name), -self._expected(step.name) if step.gpus else 0))
        with ThreadPoolExecutor(self._gpus.qsize()) as pool:
            for step in steps:
                if not step.gpus:
                    self.run(step, repeat)
            running = [pool.submit(self.run, step, repeat) for step in steps if step.gpus]
            try:
                for step in running:
                    step.result()
            except BaseException as error:
                self._ended_by = str(error)
                pool.shutdown(cancel_futures=True)
                raise

    def run(self, step, repeat=False):
        """Run the step unless it has passed. A failure is recorded before it starts, in case it kills this process."""
        if self.holds(step.name) and not repeat:
            return self._say(step.name, "passed before")
        if step.instead:
            self._keep(step, self._outcome("skipped", note=step.instead))
            return self._say(step.name, f"skipped, {step.instead}")
        expected, left = self._expected(step.name), self._deadline - time.monotonic()
        if left < expected:
            return self._say(step.name, f"not begun: it takes about {expected:.0f} s, and {max(0, left):.0f} s are left")
        gpus = [self._gpus.get() for _ in range(step.gpus)]
        try:
            self._run_on(gpus, step)
        finally:
            for gpu in gpus:
                self._gpus.put(gpu)

    def _expected(self, name):
        """The seconds that the step takes."""
        return self._took.get(name, plan.expected(name))

    def _run_on(self, gpus, step):
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {}
        step = replace(step, jobs=tuple(replace(job, environment=job.environment | visible) for job in step.jobs))
        for job in step.jobs:
            for left in job.log.parent.glob(f"{job.log.stem}.*"):
                left.unlink()
        self._say(step.name, f"{len(step.jobs)} processes, at most {LIMIT} s")
        started = time.monotonic()
        self._keep(step, self._findings(step, started, note=shown.CUT_OFF))
        try:
            outcome = self._run(step, started)
        except BaseException as error:  # whatever ends this process is the step's outcome
            outcome = self._findings(step, started, note=f"{type(error).__name__}: {error}")
            if not isinstance(error, OSError):
                raise
        finally:
            self._keep(step, outcome)
        self._tell(step, outcome)

    def _run(self, step, started):
        last = started

        def watch():
            nonlocal last
            if self._ended_by is not None:
                raise SystemExit(self._ended_by)
            if time.monotonic() - last >= EVERY:
                last = time.monotonic()
                so_far = self._findings(step, started, note=shown.CUT_OFF)
                self._keep(step, so_far)
                self._say(step.name, f"{so_far.seconds:.0f} s, {_in_words(so_far.counts) or 'starting'}")

        limit = min(LIMIT, self._deadline - time.monotonic())
        statuses = processes.run(step.jobs, limit, watch, grace=5)  # shorter than a campaign's grace, which may run this
        is_cut_off = None in statuses and limit < LIMIT
        outcome = self._findings(step, started, note=f"{shown.CUT_OFF} in the time that there was" if is_cut_off else "")
        if is_cut_off:
            self._took[step.name] = max(self._expected(step.name), outcome.seconds)
        for job, status in zip(step.jobs, statuses):
            if status is None and is_cut_off:
                continue
            failures = step.read(job.log).failures
            if status is None or job.log.stem in failures or (status and not failures):
                outcome.failures[job.log.stem] = (
                    f"{processes.in_words(status, limit)}; its last output: {_last_output(job.log)}"
                )
        if not outcome.counts and not outcome.failures and not is_cut_off:
            outcome.failures[step.name] = "nothing ran"
        outcome.status = "failed" if outcome.failures or is_cut_off else "passed"
        return outcome

    def _findings(self, step, started, note=""):
        """What the step's programs have written so far, as a failed outcome."""
        findings = [step.read(job.log) for job in step.jobs]
        counts = sum((f.counts for f in findings), Counter())
        failures, warnings = (
            {k: v for f in findings for k, v in getattr(f, kind).items()} for kind in ("failures", "warnings")
        )
        if note.startswith(shown.CUT_OFF):  # that a process did not end, and has no summary, is no failure of the kernels
            for job in step.jobs:
                failures.pop(job.log.stem, None)
                failures.pop(f"{job.log.stem}, no summary", None)
        used = sorted(frozenset().union(*(f.used for f in findings)))
        seconds, digest = round(time.monotonic() - started, 1), sources.digest(step.name, used)
        left_out = [what for what in self._about["left_out"] if what != QUICK or plan.parts(step.name)[0] in plan.QUICKER]
        found = {"counts": dict(counts), "failures": failures, "warnings": warnings}
        found |= {"used": used, "digest": digest, "left_out": left_out}
        return self._outcome("failed", seconds=seconds, note=note, **found)

    def _outcome(self, status, **more):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        of_now = {name: self._about[name] for name in ("commit", "command", "driver")}
        return Outcome(status=status, date=now, **of_now, **more)

    def _keep(self, step, outcome):
        with self._keeping:  # steps run in parallel
            self._keep_alone(step, outcome)

    def _keep_alone(self, step, outcome):
        self.outcomes[step.name] = outcome
        left_out = " and ".join(self._about["left_out"])
        ordered = {name: self.outcomes[name] for name in self._names if name in self.outcomes}
        others = {name: outcome for name, outcome in self.outcomes.items() if name not in ordered}
        if outcome.status == "passed":
            self._took[step.name] = outcome.seconds
        if all(map(self.is_done, self._names)):
            counts = {name: o.counts for name, o in ordered.items()}
            skipped = {name: o.note for name, o in ordered.items() if o.status == "skipped"}
            commits = sorted({o.commit for o in ordered.values() if o.status == "passed"})
            self._last_passed = {"commit": outcome.commit, "commits": commits, "date": outcome.date, "counts": counts}
            self._last_passed |= {"skipped": skipped, "left_out": left_out, "kernels": kernels.digests()}
        kept = {name: self._about[name] for name in (*KEY, "commit")}
        kept |= {"left_out": left_out, "planned": list(self._names), "last_passed": self._last_passed}
        kept |= {"took": self._took, "steps": {name: asdict(o) for name, o in (ordered | others).items()}}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        processes.replace(self._path, shown.text(shown.read(self._path) | {self._about["triton"]: kept}))

    def _tell(self, step, outcome):
        self._say(step.name, f"{outcome.status} after {outcome.seconds:.0f} s, {_in_words(outcome.counts)} {outcome.note}")
        for name, why in outcome.failures.items():
            print(f"  {name}: {why}", flush=True)

    def _say(self, name, text):
        print(f"gate {name}: {text}", flush=True)

    def show(self):
        rows = []
        for name in self._names:
            o = self.outcomes.get(name)
            counts = _in_words(o.counts) if o else ""
            note = o.note or f"{len(o.failures)} failures" * bool(o.failures) if o else ""
            status = "not run" if o is None else "out of date" if o.status == "passed" and not self.holds(name) else o.status
            rows.append([name, status, f"{o.seconds:.0f} s" if o else "", counts, o.commit if o else "", note])
        styles = ["bold red" if row[1] == "failed" else None for row in rows]
        table.print_table(["step", "outcome", "time", "counts", "commit", ""], rows, styles)


def _in_words(counts):
    return ", ".join(f"{n:,} {kind}" for kind, n in counts.items())


def _last_output(log):
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-12:])[-2000:] if log.exists() else "none"


@contextmanager
def _ended_by_sigterm():
    """Makes SIGTERM an exit, so that running programs are ended and the outcome is written."""

    def end(number, frame):
        sys.exit(f"ended by {signal.Signals(number).name}")

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
