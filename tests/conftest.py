"""Counts what cannot run here, so that a green run never hides it: without a GPU the last lines say how many need one."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # there is one per core: more threads than one each would wait for each other, spinning
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import pytest
import torch

NOT_RUN = pytest.StashKey[int]()


def pytest_addoption(parser):
    parser.addoption("--every-config", action="store_true", help="compile every kernel for every architecture: 10 minutes more")
    parser.addoption("--depth", type=int, default=1, help="of tests/properties: this many times as many examples")


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU; counted, not run, without one")
    config.addinivalue_line("markers", "long: takes long, and goes first, so that no core waits for another's last test")
    config.stash[NOT_RUN] = 0


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    if torch.cuda.is_available():
        return
    left_out = [item for item in items if item.get_closest_marker("gpu")]
    config.stash[NOT_RUN] = len(left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("gpu")]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # under pytest-xdist the workers collect and the controller reports
        session.config.workeroutput["gpu_tests_not_run"] = session.config.stash[NOT_RUN]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    node.config.stash[NOT_RUN] = getattr(node, "workeroutput", {}).get("gpu_tests_not_run", 0)


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[NOT_RUN]:
        terminalreporter.write_line(f"GPU tests not run: {config.stash[NOT_RUN]}, no GPU")


@pytest.fixture(autouse=True)
def seeded(request):
    """Fresh data per test, the same in every run: the seed is the test's name."""
    torch.manual_seed(hash_of(request.node.nodeid))


def hash_of(text):
    """A hash that does not change from process to process."""
    return int.from_bytes(text.encode(), "little") % (2**31 - 1)
