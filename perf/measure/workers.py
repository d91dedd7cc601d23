"""Child processes that do one task after another; one that crashes or hangs is replaced without harm to the others."""

import multiprocessing
import multiprocessing.connection
import os
import signal

_SPAWN = multiprocessing.get_context("spawn")  # a fork would share its parent's CUDA context

lock = _SPAWN.Lock  # for workers of one parent


class Worker:
    """Runs work(task, tell) in its process, with additional variables of the environment; tell(value) reports before the
    answer."""

    def __init__(self, work, environment=None):
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(work, theirs), daemon=True)
        before = dict(os.environ)
        os.environ.update(environment or {})  # the child has them from its start on, before it imports anything
        try:
            self._process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        theirs.close()

    def fileno(self):
        return self._connection.fileno()

    def give(self, task):
        self._connection.send(task)

    def receive(self):
        """("news" | "done", value), or ("died", why)."""
        try:
            return self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            return "died", f"its process ended with status {self._process.exitcode}"

    def end(self):
        self._process.kill()
        self._process.join()
        self._connection.close()


def wait(workers, seconds):
    """The workers that have something to say, at the latest after so many seconds."""
    return multiprocessing.connection.wait(workers, max(0.0, seconds))


def _serve(work, connection):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(("done", work(task, lambda value: connection.send(("news", value)))))
