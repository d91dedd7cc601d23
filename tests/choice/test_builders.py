"""builders.run: what came of each build, and no process of it after it has returned or raised."""

import math
import os
import signal

import pytest

from tests.choice import processes
from tritonkernels.choice import builders


@pytest.fixture(autouse=True)
def two_builders(monkeypatch):
    monkeypatch.setattr(builders, "cores", lambda: 2)


def run(folder, *tasks, prepare=processes.prepare, soon=math.inf, late=math.inf):
    return builders.run(prepare, [(folder, task) for task in tasks], soon, late)


def test_each_build_s_outcome(tmp_path):
    found = run(tmp_path, "succeed", "fail", "crash", "succeed", "succeed")
    died = {2: "its build ended without an answer"}
    assert found == {0: None, 1: "ZeroDivisionError: of this build", 3: None, 4: None} | died
    assert processes.noted(tmp_path) and processes.left(tmp_path) == []


def test_those_that_hang_end_with_the_first_success_after_their_time(tmp_path):
    assert run(tmp_path, "hang", "wait_for_hang", "hang", soon=0.0) == {1: None}
    assert len(processes.noted(tmp_path)) >= 4 and processes.left(tmp_path) == []


def test_where_none_succeeds_it_ends_in_time(tmp_path):
    assert run(tmp_path, "hang", "hang", soon=0.0, late=0.2) == {}, "before or after the builders have begun"
    assert processes.left(tmp_path) == []


def test_an_interrupted_call_ends_its_builders(tmp_path):
    (tmp_path / "caller").write_text(str(os.getpid()))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a suite in the background does not heed
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, "hang", "interrupt")
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(processes.noted(tmp_path)) == 4 and processes.left(tmp_path) == []


def test_where_builders_cannot_begin(tmp_path, capfd):
    with pytest.raises(builders.NotStartedError):
        run(tmp_path, "succeed", prepare=processes.fail_to_prepare)
    assert "OSError: no memory" in capfd.readouterr().err
    assert run(tmp_path) == {}
