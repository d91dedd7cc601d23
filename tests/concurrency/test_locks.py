"""Locks between threads and processes that need the same module: taken once, held no longer than needed, not inherited by a
fork."""

import os
import threading
import time

import pytest

from cuda_reference import build
from tests.concurrency.conftest import KERNEL, SOURCE
from tritonkernels import cache
from tritonkernels.errors import BuildError


@pytest.mark.parametrize("make", [lambda lock: lock.symlink_to("precious"), lambda lock: lock.mkdir()], ids=["link", "folder"])
def test_a_lock_that_cannot_be_opened(builds, make):
    builds.folder.mkdir(0o700)
    precious = builds.folder / "precious"
    precious.write_text("content")
    make(builds.folder / f"{builds.name}.lock")
    with pytest.raises(BuildError, match=r"\.lock cannot be opened: .* Remove it\."):
        builds.load()
    assert precious.read_text() == "content"


def test_threads_build_a_module_once_and_delay_no_other(builds, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()
    original = builds.compile

    def slow(recipe, folder, timeout):
        if recipe.name == builds.name:
            begun.set()
            assert go_on.wait(60)
        original(recipe, folder, timeout)

    monkeypatch.setattr(build, "_compile", slow)
    monkeypatch.setattr(build, "_import", lambda name, descriptor: type("Module", (), {KERNEL: len, "other": len}))
    got = []
    threads = [threading.Thread(target=lambda: got.append(build.load(SOURCE, (KERNEL,), "simt"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    assert build.load(SOURCE, ("other",), "simt")["other"] is len, "another module waits for nobody"
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert builds.compiled == 2 and len(got) == 8 and all(kernels is got[0] for kernels in got)


def in_a_fork(work):
    """The process number of a fork that does `work`, and ends with 0 unless it raises."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def test_a_fork_inherits_no_lock(builds):
    builds.load()
    build._kernels.clear()
    build._locks.setdefault((SOURCE, (KERNEL,), "simt"), threading.Lock()).acquire()  # as by another thread
    loaded = threading.Event()

    def work():
        thread = threading.Thread(target=lambda: (build.load(SOURCE, (KERNEL,), "simt"), loaded.set()), daemon=True)
        thread.start()
        assert loaded.wait(20)

    try:
        assert os.waitpid(in_a_fork(work), 0)[1] == 0
    finally:
        build._locks.clear()


def test_a_fork_keeps_no_lock(builds):
    with cache.locked("name", 1):
        pid = in_a_fork(lambda: time.sleep(30))
    try:
        with cache.locked("name", 0.2):
            pass
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
