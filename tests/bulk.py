"""--bulk: what tests/instances.json lists for the emulation is built before the first test, a thousand in some fifty modules.

Without it tests take those modules where they are built, and else build what each of them needs: for one test that is less.
"""

import os
from pathlib import Path

import pytest

from tests import children

LISTED = Path(__file__).with_name("instances.json")
os.environ["TRITONKERNELS_INSTANCES"] = str(LISTED)  # for children, too


class Bulk:
    """The plugin."""

    def __init__(self):
        self.unlisted = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Workers share the modules out, and each goes through all, so that it waits for what the others build."""
        worker = getattr(session.config, "workerinput", {"workerid": "gw0", "workercount": 1})
        if hasattr(session.config, "workerinput") or not session.config.getoption("numprocesses", None):
            from cuda_reference import bulk

            number = int(worker["workerid"].removeprefix("gw"))
            if number == worker["workercount"] - 1:  # built in the background, it would give way to the tests that wait for it
                children.run("-c", "from tritonkernels import native; native.load()")
            bulk.build_listed(number, worker["workercount"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        from cuda_reference import bulk

        self.unlisted |= bulk.unlisted
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["unlisted"] = sorted(self.unlisted)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.unlisted |= set(map(tuple, getattr(node, "workeroutput", {}).get("unlisted", ())))

    def pytest_terminal_summary(self, terminalreporter):
        if self.unlisted:
            count = len(self.unlisted)
            terminalreporter.write_line(f"Not in {LISTED.name}: {count} instances; renew it with python -m tests.instances")
