"""python -m perf campaign: checks on a GPU, within a time limit, and measures what is older than the kernels, most rows first.

A suite is current if its records, in DIR or perf/results/GPU, are whole, right and of today's kernels; --all measures it, too.

Each step is its own process, so that a crash, a hang or a CUDA fault does not affect the next; of several GPUs each measures
a step of its own. A passed step is recorded in DIR/campaign.json with the commit and the GPU. A second call repeats failed
steps only. If the gate (`python -m perf gate`) fails, nothing is measured without --even-if-red. No other failed step stops
the campaign: compare never times wrong results. Logs, records and summary.md are in DIR, up to date after every step.

Exit status: 1 if a step failed or did not run, 2 without a GPU or for bad arguments.
"""

import json
import queue
import shlex
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

import torch

from tritonkernels.choice import efficiency

from .. import processes
from ..arguments import folder, positive
from . import classes, kernels, summary
from .environment import revision
from .measured import RESULTS
from .shapes import FAMILIES
from .suites import SUITES

CURRENT = "its records are of today's kernels"


@dataclass(frozen=True)
class Step:
    name: str
    command: tuple[str, ...]
    share: float  # at most this share of the campaign's time, so that a hang leaves time for the next step
    records: str | None = None  # the file of records that it writes in DIR
    gate: bool = False  # if it fails, the steps after it are not run
    current: bool = False  # there is nothing to renew


@dataclass
class Outcome:
    name: str
    status: str  # "passed", "current", "failed", "killed" or "not run"
    seconds: float = 0.0
    note: str = ""
    commit: str = ""
    device: str = ""


def plan(out, recorded=None):
    """The steps, most important first. `recorded` is a folder of records; where these are current, or those in `out`, there is
    nothing to renew."""
    folders = [out, *([recorded] if recorded else [])]
    old = {
        suite: min(kernels.outdated(folder / f"{suite}.json", cases) for folder in folders)
        for suite, cases in SUITES.items()
        if suite != "smoke"
    }
    return [
        Step("doctor", _python("-m", "perf", "doctor"), 0.1),
        Step("gate", _python("-m", "perf", "gate"), 1.0, gate=True),
        _compare("smoke", out, 0.4),
        _compare(classes.SUITE, out, 0.5),
        *(_own(command, out) for command in ("models", "errors", "torch")),
        *(_compare(suite, out, 0.7, not old[suite]) for suite in sorted(old, key=old.get, reverse=True)),
        *(Step(f"sweep-{op}", _python("-m", "perf", "sweep", op, "--out", str(out / "sweep")), 0.4) for op in FAMILIES),
    ]


def _compare(suite, out, share, current=False):
    command = _python("-m", "perf", "compare", "--suite", suite, "--json", str(out / f"{suite}.json"))
    return Step(suite, command, share, records=f"{suite}.json", current=current)


def _own(command, out):
    """The step of a command that has records of its own."""
    return Step(command, _python("-m", "perf", command, "--json", str(out / f"{command}.json")), 0.4)


def _python(*arguments):
    return (sys.executable, *arguments)


def add_arguments(parser):
    parser.add_argument(
        "--minutes", type=positive("minutes"), required=True, metavar="M", help="the time limit of the whole campaign"
    )
    parser.add_argument("--out", type=folder, required=True, metavar="DIR", help="the results; made if missing, else continued")
    parser.add_argument("--even-if-red", action="store_true", help="measure although the gate has not passed")
    parser.add_argument("--all", action="store_true", help="measure also what is current")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and stop")


def main(options, parser):
    out = options.out.absolute()
    has_gpu = torch.cuda.is_available()
    steps = plan(out, RESULTS / efficiency.gpu_name(torch.cuda.get_device_name()) if has_gpu else None)
    if options.all:
        steps = [replace(step, current=False) for step in steps]
    if options.dry_run:
        for step in steps:
            limit = CURRENT if step.current else f"at most {step.share * options.minutes:.1f} min"
            print(f"{step.name}: {limit}: {shlex.join(step.command)}")
        return 0
    if not has_gpu:
        print("campaign needs a GPU and torch sees none; --dry-run prints the plan", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    about = revision(), torch.cuda.get_device_name()
    outcomes = Campaign(steps, out, 60 * options.minutes, *about, options.even_if_red).run(processes.gpus())
    return 0 if all(o.status in ("passed", "current") for o in outcomes) else 1


class Campaign:
    """The steps' outcomes, kept in the folder's campaign.json and summary.md."""

    def __init__(self, steps, out, seconds, commit, device, even_if_red=False):
        self._steps, self._out, self._seconds, self._even_if_red = steps, out, seconds, even_if_red
        self._about = {"commit": commit, "device": device}
        self._started, self._red, self._ended = time.monotonic(), False, threading.Event()
        self._journal, self._keeping = out / "campaign.json", threading.Lock()
        self._history = [Outcome(**e) for e in json.loads(self._journal.read_text())] if self._journal.exists() else []
        self._passed = {o.name: o for o in self._history if o.status == "passed" and (o.commit, o.device) == (commit, device)}
        self._outcomes = {}

    def run(self, gpus=("0",)):
        """The outcome of every step, in order: those up to the gate have the whole machine, the others a GPU each."""
        alone = 1 + max((i for i, step in enumerate(self._steps) if step.gate), default=-1)
        free = queue.Queue()
        for gpu in gpus:
            free.put(gpu)

        def measure(step):
            gpu = free.get()
            try:
                self._run(step, {"CUDA_VISIBLE_DEVICES": gpu})
            finally:
                free.put(gpu)

        for step in self._steps[:alone]:
            self._run(step)
        with ThreadPoolExecutor(len(gpus)) as pool:
            running = [pool.submit(measure, step) for step in self._steps[alone:]]
            try:
                for step in running:
                    step.result()
            except BaseException:  # such as Ctrl-C: the steps that run are ended, too
                self._ended.set()
                pool.shutdown(cancel_futures=True)
                raise
        return [self._outcomes[step.name] for step in self._steps]

    def _run(self, step, environment=None):
        left = self._seconds - (time.monotonic() - self._started)
        if step.name in self._passed:
            outcome = self._passed[step.name]
        elif step.current:
            outcome = Outcome(step.name, "current", note=CURRENT)
        elif self._red:
            outcome = Outcome(step.name, "not run", note="the gate has failed; --even-if-red measures anyway")
        elif left <= 0:
            outcome = Outcome(step.name, "not run", note="no time was left")
        else:
            outcome = self._outcome(step, min(left, step.share * self._seconds), environment or {})
        with self._keeping:
            self._keep(step, outcome)

    def _outcome(self, step, limit, environment):
        started = time.monotonic()
        if step.records:  # an earlier attempt's records are not this one's
            (self._out / step.records).unlink(missing_ok=True)
        job = processes.Job(step.command, self._out / f"{step.name}.log", environment)
        (code,) = processes.run([job], limit, self._watch)
        status = "killed" if code is None else "failed" if code else "passed"
        note = processes.in_words(code, limit) if code != 0 else ""
        return Outcome(step.name, status, round(time.monotonic() - started, 1), note, **self._about)

    def _watch(self):
        if self._ended.is_set():
            raise SystemExit("the campaign was ended")

    def _keep(self, step, outcome):
        if outcome.commit and step.name not in self._passed:
            self._history.append(outcome)
            processes.replace(self._journal, json.dumps([asdict(o) for o in self._history], indent=1) + "\n")
        self._outcomes[step.name] = outcome
        self._red |= step.gate and outcome.status != "passed" and not self._even_if_red
        print(f"{step.name}: {outcome.status}" + (f" ({outcome.note})" if outcome.note else ""), flush=True)
        summary.write(self._out, self._steps, list(self._outcomes.values()))
