"""The shipped tuned tables: choices that were measured to beat the model's, one readable JSON file a GPU in the package.

    tables/h200/tuned.json    an Entry a line, as in the user's table, which is asked first

`python -m perf tune --ship` writes them. A table serves its own GPU and no other. An entry of another compiler is a miss
without a word: whoever calls has not made it, and tuning writes to the user's table. TRITONKERNELS_TUNING=off is for these too.
"""

import dataclasses
import json
import logging

from .. import user_file
from ..errors import TuningError
from . import efficiency
from .table import SCHEMA, by_key, class_text

FILE = "tuned.json"

log = logging.getLogger("tritonkernels")


class ShippedTable:
    """The tables in a folder; each is read at the first choice for its GPU."""

    def __init__(self, folder=efficiency.TABLES):
        self._folder, self._tables = folder, {}

    def find(self, package, problem, gpu, compiler):
        """The Entry, or None; compiler() is its name, needed only if there may be one."""
        if gpu not in self._tables:
            table = self._read(gpu)
            self._tables[gpu] = table, {key[:2] for key in table}
        table, operations = self._tables[gpu]
        if (package, problem.op) not in operations:  # class_text takes a tenth of a choice
            return None
        found = table.get((package, problem.op, efficiency.gpu_name(gpu), class_text(problem)))
        return found.get(compiler()) if found else None

    def store(self, entry):
        """Write the user's entry into the table of its GPU; there is none if it says that the model's choice is the best."""
        entry = dataclasses.replace(entry, gpu=efficiency.gpu_name(entry.gpu), tried=[])
        path = self.path(entry.gpu)
        try:
            table = _entries_of(path)
            of_key = table.setdefault(entry.key, {})
            of_key.pop(entry.compiler, None)
            if entry.design is not None:
                of_key[entry.compiler] = entry
            lines = sorted(json.dumps(vars(kept)) for versions in table.values() for kept in versions.values())
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join([f'{{"schema": {SCHEMA}, "entries": [', ",\n".join(lines), "]}\n"]))
        except (OSError, ValueError, RecursionError) as error:
            raise TuningError(f"the shipped table cannot be written: {path}: {error}") from error
        self._tables.clear()

    def path(self, gpu):
        return self._folder / efficiency.gpu_name(gpu) / FILE

    def _read(self, gpu):
        path = self.path(gpu)
        try:
            return {} if user_file.is_off() else _entries_of(path)
        except (OSError, ValueError, RecursionError) as error:
            log.warning("tritonkernels: the shipped table is not used: %s: %s. Install tritonkernels again", path, error)
            return {}


def _entries_of(path):
    """{key: {compiler: Entry}} of a file; empty if there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    return by_key(user_file.entries_of(json.loads(text), SCHEMA))


SHIPPED = ShippedTable()
