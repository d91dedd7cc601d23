"""python -m perf gate: runs every check on this machine's GPU, in steps of under 8 minutes each.

build and calls build the kernels and make the smallest, ragged and empty calls of every design; memcheck repeats them under
compute-sanitizer, racecheck and synccheck those of the CUDA designs, consan and gsan those of Triton designs that order memory
accesses themselves under Triton's own sanitizers; tests-1 and so on and properties run all GPU tests, large those of operands
beyond 2^31 elements; two_gpus needs two GPUs. With several GPUs, steps run in parallel on different GPUs.

The outcome of each step is written at once to perf/results/GPU/gate.json, which has a record for each Triton: the one that
Python finds is used. A passed step is not repeated for the same sources, versions and GPU. Logs are in build/gate. `make docs`
writes the outcome into the docs, on any machine.

--package tritonkernels leaves out what no Triton can change, the kernels of cuda_reference: for a second Triton on a GPU.
--quick leaves out the cases that `make test` does. The record says so; a step counts only for runs that leave out the same.

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

from ..measure import environment, kernels
from ..render import gate as shown
from ..render import table
from . import gate_steps, processes

LIMIT = 470  # seconds of a step
EVERY = 15  # seconds between lines of progress
# An outcome is valid while these are unchanged.
KEY = ("gpu", "sources", "python", "torch", "triton", "numpy", "cuda", "nvcc", "left_out")


@dataclass
class Outcome:
    status: str  # "passed", "failed" or "skipped"
    commit: str
    date: str
    command: str
    driver: str | None
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)
    note: str = ""


def add_arguments(parser):
    parser.add_argument(
        "--step", action="append", metavar="NAME", help="only this step ('tests': all its shards); may be repeated"
    )
    parser.add_argument("--again", action="store_true", help="also repeat passed steps")
    parser.add_argument(
        "--package", choices=("tritonkernels",), help="leave out cuda_reference, whose kernels are the same with every Triton"
    )
    parser.add_argument("--quick", action="store_true", help="leave out the cases of tests that make test leaves out")
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no step that is expected to end after N minutes")
    environment.add_commit(parser)


def main(options, parser):
    if not torch.cuda.is_available() or backend.device_type() != "cuda":
        why = "torch sees none" if not torch.cuda.is_available() else "TRITONKERNELS_BACKEND selects the interpreter"
        print(f"gate needs a GPU, and {why}", file=sys.stderr)
        return 2
    logs = environment.ROOT / "build/gate"
    every = gate_steps.steps(logs, options.package, options.quick)
    chosen = [s for s in every if not options.step or {s.name, s.name.partition("-")[0]} & set(options.step)]
    unknown = set(options.step or ()) - {name for s in every for name in (s.name, s.name.partition("-")[0])}
    if unknown:
        parser.error(f"--step: got {', '.join(sorted(unknown))}; allowed: {', '.join(s.name for s in every)}, tests")
    logs.mkdir(parents=True, exist_ok=True)
    about = _about(options)
    gate = Gate(shown.RESULTS / _folder(about["gpu"]) / "gate.json", about, [s.name for s in every], options.minutes)
    with _ended_by_sigterm():
        gate.run_all(chosen, options.again)
    gate.show()
    return 0 if all(s.name in gate.outcomes and gate.outcomes[s.name].status != "failed" for s in chosen) else 1


def _folder(gpu):
    """Where a GPU's records are, by the name that its driver has: the name of its namesake in the table of targets, if any."""
    known = [target.name for target in namesakes(gpu)]
    return (known or [re.sub(r"\W+", "_", gpu.lower().removeprefix("nvidia ")).strip("_")])[0]


def _about(options):
    """KEY's values, and others for the reader."""
    facts = environment.environment(torch.device("cuda", 0))
    named = options.commit or environment.commit() or "no-commit"
    stable = {name: facts[name] for name in ("command", "driver", "python", "torch", "triton", "numpy", "cuda", "nvcc")}
    left_out = [*["cuda_reference"] * bool(options.package), *["the cases that make test leaves out"] * options.quick]
    stable |= {"gpu": facts["device"], "commit": named, "sources": environment.digest()}
    return stable | {"left_out": " and ".join(left_out)}


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
        self._took = {}  # seconds of a step when it last ended, whatever it ran on
        for record in (*records.values(), before):
            ended = {name: entry["seconds"] for name, entry in record.get("steps", {}).items() if entry["status"] == "passed"}
            self._took |= record.get("took", {}) | ended
        same = all(before.get(name) == about[name] for name in KEY)
        self.outcomes = {name: Outcome(**entry) for name, entry in before.get("steps", {}).items()} if same else {}

    def run_all(self, steps, repeat=False):
        """First the steps that need the whole machine, one by one; then the others in parallel, as many as there are GPUs."""
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
        known = self.outcomes.get(step.name)
        if known and known.status == "passed" and not repeat:
            return self._say(step.name, "passed before")
        if step.instead:
            self._keep(step, self._outcome("skipped", note=step.instead))
            return self._say(step.name, f"skipped, {step.instead}")
        expected, left = self._took.get(step.name, LIMIT), self._deadline - time.monotonic()
        if left < expected:
            return self._say(step.name, f"not begun: it takes about {expected:.0f} s, and {max(0, left):.0f} s are left")
        gpus = [self._gpus.get() for _ in range(step.gpus)]
        try:
            self._run_on(gpus, step)
        finally:
            for gpu in gpus:
                self._gpus.put(gpu)

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

        statuses = processes.run(step.jobs, LIMIT, watch, grace=5)  # shorter than a campaign's grace, which may run this
        outcome = self._findings(step, started)
        for job, status in zip(step.jobs, statuses):
            failures = step.read(job.log).failures
            if status is None or job.log.stem in failures or (status and not failures):
                outcome.failures[job.log.stem] = (
                    f"{processes.in_words(status, LIMIT)}; its last output: {_last_output(job.log)}"
                )
        if not outcome.counts and not outcome.failures:
            outcome.failures[step.name] = "nothing ran"
        outcome.status = "failed" if outcome.failures else "passed"
        return outcome

    def _findings(self, step, started, note=""):
        """What the step's programs have written so far, as a failed outcome."""
        findings = [step.read(job.log) for job in step.jobs]
        counts = sum((f.counts for f in findings), Counter())
        failures, warnings = (
            {k: v for f in findings for k, v in getattr(f, kind).items()} for kind in ("failures", "warnings")
        )
        seconds = round(time.monotonic() - started, 1)
        return self._outcome("failed", seconds=seconds, counts=dict(counts), failures=failures, warnings=warnings, note=note)

    def _outcome(self, status, **more):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        of_now = {name: self._about[name] for name in ("commit", "command", "driver")}
        return Outcome(status=status, date=now, **of_now, **more)

    def _keep(self, step, outcome):
        with self._keeping:  # steps run in parallel
            self._keep_alone(step, outcome)

    def _keep_alone(self, step, outcome):
        self.outcomes[step.name] = outcome
        ordered = {name: self.outcomes[name] for name in self._names if name in self.outcomes}
        if outcome.status == "passed":
            self._took[step.name] = outcome.seconds
        if len(ordered) == len(self._names) and all(o.status in ("passed", "skipped") for o in ordered.values()):
            counts = {name: o.counts for name, o in ordered.items()}
            skipped = {name: o.note for name, o in ordered.items() if o.status == "skipped"}
            self._last_passed = {"commit": outcome.commit, "date": outcome.date, "counts": counts, "skipped": skipped}
            self._last_passed |= {"left_out": self._about["left_out"], "kernels": kernels.digests()}
        kept = {name: self._about[name] for name in (*KEY, "commit")}
        kept |= {"planned": list(self._names), "last_passed": self._last_passed}
        kept |= {"took": self._took, "steps": {name: asdict(o) for name, o in ordered.items()}}
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
            rows.append(
                [name, o.status if o else "not run", f"{o.seconds:.0f} s" if o else "", counts, o.commit if o else "", note]
            )
        styles = ["bold red" if row[1] == "failed" else None for row in rows]
        table.print_table(["step", "outcome", "time", "counts", "commit", ""], rows, styles)


def _in_words(counts):
    return ", ".join(f"{n:,} {kind}" for kind, n in counts.items())


def _last_output(log):
    return " | ".join(log.read_text(errors="replace").strip().splitlines()[-12:])[-2000:] if log.exists() else "none"


@contextmanager
def _ended_by_sigterm():
    """Also on SIGTERM, running programs are ended and the outcome is written."""

    def end(number, frame):
        sys.exit(f"ended by {signal.Signals(number).name}")

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
