"""Which of the cases run, and how many do not, so that a green run never hides it: its last lines say how many were left to
`make test-all`, and how many need a GPU."""

import functools
import gc
import inspect
import json
import os
import types

os.environ["TRITONKERNELS_TUNING"] = "off"  # the developer's own table
os.environ["TRITONKERNELS_NATIVE"] = "0"  # it comes when it is built, at any call; its tests turn it on

if "PYTEST_XDIST_WORKER" in os.environ:  # there is one per core: more threads than one each would wait for each other, spinning
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import pytest
import torch
from filelock import FileLock

from tests import core, covering
from tests.bulk import Bulk
from tests.core import function_of

LEFT_OUT = {  # what is said of the cases that do not run, by the names that workers send their numbers under
    "left_to_all": "Left to `make test-all`: {} tests",
    "left_to_test": "Left to `make test`: {} tests",
    "gpu_tests_not_run": "GPU tests not run: {}, no GPU",
}
COUNTS = pytest.StashKey[dict]()
MET = {}  # {(condition, values): whether it holds for these}: some prepare a call, for values that many cases have
COLLECTED = pytest.StashKey[list]()  # the cases of all files that were collected, before -k and -m


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="every case of every test, as `make test-all`")
    parser.addoption("--bulk", action="store_true", help="first build what instances.json lists, as `make test`")
    parser.addoption("--core", action="store_true", help="few cases of every test, as `make test-core`")
    parser.addoption("--depth", type=int, default=1, help="of tests/properties: this many times as many examples")


def pytest_configure(config):
    config.addinivalue_line("markers", "axes(*names): parameters that are an axis of their own (covering.axes)")
    config.addinivalue_line("markers", "alone(*names): an axis of which values meet no particular others (covering.alone)")
    config.addinivalue_line("markers", "gpu: needs a GPU; counted, not run, without one")
    config.addinivalue_line("markers", "long(when=...): a case that takes long, and goes early, so that no core waits for it")
    config.addinivalue_line("markers", "only(when): a case is none unless when(its parameters) holds (harness.only)")
    config.addinivalue_line("markers", "short(when): a case is for `make test-all` unless when(its parameters) (harness.short)")
    if config.getoption("bulk"):
        config.pluginmanager.register(Bulk())
    config.stash[COUNTS] = dict.fromkeys(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """-n auto is a worker more than cores: for a fifth of its time a worker waits for a process that a test has started."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """The garbage collector is off meanwhile, and passes over all that was collected from then on: a million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)  # of the interpreter's many small objects few are in cycles
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Before and after -k and -m: what they leave out is not counted, but known. Its conditions take a third of the time."""
    config.stash[COLLECTED] = items[:]
    yield
    choose(config, items)


def choose(config, items):
    kept, counts = [], config.stash[COUNTS]
    has_gpu = torch.cuda.is_available()
    real = [item for item in items if holds(item, "only")]
    left = set() if config.getoption("all") else left_to_all(config.stash[COLLECTED], real)
    for item in real:
        if item in left:
            counts["left_to_all"] += 1
        elif item.get_closest_marker("gpu") and not has_gpu:
            counts["gpu_tests_not_run"] += 1
        else:
            kept.append(item)
    if config.getoption("core"):
        counts["left_to_test"] = len(kept)
        kept = core.chosen(kept)
        counts["left_to_test"] -= len(kept)
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = long_ones_early(kept, getattr(config, "workerinput", {}).get("workercount", 1))


def left_to_all(collected, items):
    """The items that `make test` leaves out: the same ones, whatever -k and -m leave of their tests."""
    tests = {function_of(item.nodeid) for item in items}
    of_these = [item for item in collected if function_of(item.nodeid) in tests]
    noticed = covering.known_killers()
    considered = [i for i in of_these if holds(i, "only") and (i.nodeid in noticed or holds(i, "short"))]
    return set(items).difference(considered) | covering.left_out(considered)


def long_ones_early(items, workers):
    """The items in an order of which pytest-xdist gives each worker an equal run, that begins with its share of the long ones.

    If one worker had all of these, the others would steal them from it when they have nothing else to do.
    """
    long, others, ordered = [], [], []
    for item in items:
        (long if is_long(item) else others).append(item)
    for worker in range(workers):
        share = long[worker::workers]
        more = max(0, (len(items) - len(ordered)) // (workers - worker) - len(share))
        ordered += share + others[:more]
        del others[:more]
    return ordered + others


def is_long(item):
    return any(not marker.args or met(item, *marker.args) for marker in item.iter_markers("long"))


@functools.cache
def holds(item, name):
    """Whether all the conditions that its markers of this name set hold for the parameters of the case."""
    return all(met(item, *marker.args) for marker in item.iter_markers(name))


def met(item, when):
    values = tuple(item.callspec.params[parameter] for parameter in parameters(when))
    key = when, covering.key_of(values)
    if key not in MET:
        MET[key] = when(*values)
    return MET[key]


@functools.cache
def parameters(function):
    """The names of its parameters."""
    return tuple(inspect.signature(function).parameters)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # under pytest-xdist the workers collect and the controller reports
        session.config.workeroutput["left_out"] = session.config.stash[COUNTS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    node.config.stash[COUNTS] = getattr(node, "workeroutput", {}).get("left_out", node.config.stash[COUNTS])


def pytest_terminal_summary(terminalreporter, config):
    for name, count in config.stash[COUNTS].items():
        if count:
            terminalreporter.write_line(LEFT_OUT[name].format(count))


@pytest.fixture(scope="session")
def once(tmp_path_factory, pytestconfig):
    """once(name, make): what make() returns, as JSON keeps it; of pytest-xdist's workers one makes it for all."""
    shared = hasattr(pytestconfig, "workerinput")
    folder = tmp_path_factory.getbasetemp().parent if shared else tmp_path_factory.mktemp("once")

    def made(name, make):
        file = folder / f"{name}.json"
        with FileLock(folder / f"{name}.lock"):
            if not file.exists():
                file.write_text(json.dumps(make()))
        return json.loads(file.read_text())

    return made


@pytest.fixture
def everything(pytestconfig):
    """Whether this is `make test-all`: for tests that take more of something in one case then."""
    return pytestconfig.getoption("all")


@pytest.fixture(autouse=True)
def seeded(request):
    """Fresh data per test, the same in every run: the seed is the test's name."""
    # Without a GPU torch.manual_seed keeps the seed for three kinds of them, and formats the stack for each: a millisecond.
    seed = torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed
    seed(hash_of(request.node.nodeid))


def hash_of(text):
    """A hash that does not change from process to process."""
    return int.from_bytes(text.encode(), "little") % (2**31 - 1)


@pytest.fixture
def live(monkeypatch):
    """live(properties): the Target of a GPU for which torch gives these properties."""
    from tritonkernels.target import Target

    def of(properties):
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: types.SimpleNamespace(**properties))
        return Target.live(torch.device("cuda"))

    return of
