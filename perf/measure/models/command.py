"""python -m perf models: whole models, with every Linear and Conv2d ours, and the same with torch's, on this GPU.

ResNet-50, ConvNeXt-T, EfficientNet-B0, RegNetY-3.2 and ViT-S from timm, BERT, Whisper's encoder and a Llama of 4 layers from
transformers, with random weights: forward and a training step (forward and backward, without an optimizer), in a CUDA graph and
call by call, in turns in the same run. Errors are relative to a float64 run of the same model. First calls begin with no Triton
kernel built; all models make theirs at a time, a process each. Memory is what a call takes above weights and inputs. Where the
time goes is torch's profile: kernel time by operation and layer.

With --json the rows of the same commit that FILE has are kept, and the others are measured: a run that was ended goes on.
Without a GPU small variants are checked, in Triton's interpreter, and nothing is timed. --predict needs none, and compares with
the records in perf/results: predicted.py.

Exit status: 1 if a model failed or is less exact than torch's, 0 also if some were not run: the last lines name them.
"""

import contextlib
import os
import tempfile
import time
from dataclasses import asdict

from tritonkernels.target import Target

from ...arguments import positive, writable
from ...show import table
from .. import contenders, records, workers
from ..environment import add_commit, environment
from ..measured import RESULTS
from . import predicted, zoo
from . import table as rendered
from .one import CHOSEN, OfModel, Row

MINUTES = 9.0
LEAST_S = 20  # no model is begun with less time left
LIMIT_S = 300  # of a task: longer is a hang


def add_arguments(parser):
    parser.add_argument(
        "--model", nargs="+", choices=zoo.MODELS, metavar="NAME", help=f"of {', '.join(zoo.MODELS)}; default: all"
    )
    parser.add_argument(
        "--dtype", nargs="+", choices=("bf16", "fp32", "tf32"), metavar="NAME", help="bf16, fp32, tf32; default: all"
    )
    parser.add_argument(
        "--implementation", nargs="+", choices=contenders.PACKAGES, default=["triton"], help="whose modules; default: triton"
    )
    parser.add_argument(
        "--budget",
        type=positive("seconds"),
        metavar="SECONDS",
        help="also measure what nn.replace chooses by itself within so long, for each model; default: not at all",
    )
    parser.add_argument(
        "--minutes", type=positive("minutes"), default=MINUTES, help="begin nothing later than that; default: %(default)g"
    )
    parser.add_argument("--predict", action="store_true", help="no run: what each layer would take, by the model of time")
    parser.add_argument("--gpu", default="h200", help="of --predict, a name of the table of targets; default: %(default)s")
    parser.add_argument("--json", type=writable, metavar="FILE", help="write the rows there, and keep those that it has")
    add_commit(parser)


def main(options, parser):
    if options.predict:
        recorded = rendered.rows_of(RESULTS / options.gpu)
        predicted.report(list(_subjects(options)), options.implementation, Target.named(options.gpu), recorded)
        return 0
    until = time.monotonic() + 60 * options.minutes
    device = contenders.device()
    origin = environment(device, options.commit)
    names = [*options.implementation, *(name + CHOSEN for name in options.implementation if options.budget)]
    rows = _kept(options.json, origin, names) if options.json else []
    done = {(row["model"], row["dtype"]) for row in rows}
    wanted = [(key, dtype) for key, dtype in _subjects(options) if (key, dtype) not in done]
    with contextlib.closing(measured(wanted, options.implementation, options.budget, until, device.type == "cuda")) as found:
        for row in found:
            rows.append(asdict(row) | {"environment": origin})
            if options.json:
                records.write_rows(options.json, rows)
    rows.sort(key=lambda row: (list(zoo.MODELS).index(row["model"]), row["dtype"]))
    if options.json and rows:
        records.write_rows(options.json, rows)
    for title, headings, body in rendered.tables(rows):
        print(f"\n{title}")
        table.print_table(headings, body)
    if device.type == "cpu":
        print("\nWithout a GPU: small variants of the models, in Triton's interpreter; nothing is timed.")
    for line in rendered.unsound(rows):
        print(line)
    return 1 if any(row["ok"] is False for row in rows) else 0


def _subjects(options):
    for key, model in zoo.MODELS.items():
        for dtype in model.dtypes:
            if (not options.model or key in options.model) and (not options.dtype or dtype in options.dtype):
                yield key, dtype


def _kept(path, origin, names):
    """The rows of the file that need not be measured again: of this commit, with these modules, and all right of a model."""
    if not path.exists() or not path.stat().st_size:
        return []
    same = ("commit", "device", "torch", "triton")
    rows = [row for row in records.read_rows(path) if all(row["environment"][name] == origin[name] for name in same)]
    failed = {(row["model"], row["dtype"]) for row in rows if not row["ok"] or not set(names) <= row["replaced"].keys()}
    return [row for row in rows if (row["model"], row["dtype"]) not in failed]


def measured(subjects, packages, budget, until, on_gpu=True):
    """The Rows of (model, dtype) each, as they come: as many models as there are cores prepare at a time, then take turns."""
    cores, ready = os.cpu_count(), []
    for key, dtype in subjects:
        if why := zoo.missing(zoo.MODELS[key], dtype, on_gpu):
            yield unmeasured(key, dtype, why)
        else:
            ready.append((key, dtype))
    with table.progress(2 * len(ready)) as advance:
        for first in range(0, len(ready), cores):
            yield from _together(ready[first : first + cores], packages, budget, until, advance)


def _together(subjects, packages, budget, until, advance):
    if until - time.monotonic() < LEAST_S:
        yield from (unmeasured(*subject, "the time was up") for subject in subjects)
        return
    lock, started = workers.lock(), {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for key, dtype in subjects:
                with _variable("TRITON_CACHE_DIR", f"{folder}/{key}-{dtype}"), _variable("OMP_NUM_THREADS", "1"):
                    started[key, dtype] = workers.Worker(OfModel(key, dtype, packages, budget, lock))
                started[key, dtype].give("prepare")
            failed = _prepared(started, until, advance)
            for subject in failed:
                started[subject].end()
            for subject, worker in started.items():
                advance(f"{zoo.MODELS[subject[0]].title}, {subject[1]}: timing")
                if subject in failed:
                    yield unmeasured(*subject, failed[subject], ok=False)
                elif until - time.monotonic() < LEAST_S:
                    yield unmeasured(*subject, "the time was up")
                else:
                    worker.give("measure")
                    found = _answer(worker, min(LIMIT_S, until - time.monotonic()))
                    yield from [unmeasured(*subject, found, ok=False)] if isinstance(found, str) else found
                worker.end()
        finally:
            for worker in started.values():
                worker.end()


def _prepared(started, until, advance):
    """{subject: why not} of the workers that did not prepare."""
    failed, waiting = {}, {worker: subject for subject, worker in started.items()}
    end = min(until, time.monotonic() + LIMIT_S)
    while waiting:
        ready = workers.wait(list(waiting), end - time.monotonic())
        for worker in ready or list(waiting):
            subject = waiting.pop(worker)
            advance(f"{zoo.MODELS[subject[0]].title}, {subject[1]}: prepared")
            if message := _answer(worker, 0):
                failed[subject] = message
    return failed


def _answer(worker, seconds):
    """What the worker answers: in words if its process died, or did not answer in time."""
    if not workers.wait([worker], seconds):
        return f"no answer after {seconds:.0f} s" if seconds else "it was not prepared in time"
    return worker.receive()[1]


@contextlib.contextmanager
def _variable(name, value):
    """A context with an environment variable, which processes that are started get."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def unmeasured(key, dtype, why, ok=None):
    model = zoo.MODELS[key]
    return Row(key, model.title, dtype, model.size, ok=ok, message=why)
