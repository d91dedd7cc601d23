"""What a user has measured, kept for later processes: one readable JSON file a kind, a list of entries and a schema's number.

The files are in the cache folder (private.py). TRITONKERNELS_TUNING names the tuned table, and the others are next to it; "off"
is none of them. A process reads each once. They are data, never code. A file that others can write, that is damaged or has
another schema is refused, with one warning, and never overwritten.
"""

import dataclasses
import json
import logging
import os
import tempfile
import threading
from pathlib import Path

from . import private
from .errors import CacheError, TuningError

TABLE = "tuning.json"
LOCK_SECONDS = 10

log = logging.getLogger("tritonkernels")


class UserFile:
    """`title` is what messages call the file. parse(entries) makes its content, or raises ValueError; entries(content) is the
    list to write."""

    def __init__(self, name, title, schema, parse, entries):
        self._name, self._title, self._schema, self._parse, self._entries = name, title, schema, parse, entries
        self._content, self._lock = None, threading.Lock()

    def content(self):
        """What the file had when this process first asked, or has last written; parse([]) if there is none to use."""
        if self._content is None:
            self._read()
        return self._content

    def change(self, change):
        """Write change(content of the file) in place of it; TuningError if that is impossible."""
        from filelock import FileLock, Timeout  # torch needs it too; imported here, so that importing the package stays cheap

        path = self.path()
        try:
            with FileLock(f"{path}.lock", mode=0o600).acquire(timeout=LOCK_SECONDS):
                content = change(self._content_of(path))
                _replace(path, {"schema": self._schema, "entries": self._entries(content)})
        except Timeout:
            raise TuningError(f"another process has held {path}.lock for {LOCK_SECONDS} s: end it, and try again.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise TuningError(f"{self._title} cannot be written: {_said(path, error)}") from error
        self._content = content

    def path(self):
        """The file to write; TuningError if there is none."""
        try:
            path = self._path(private.folder)
        except CacheError as error:
            raise TuningError(f"{self._title} cannot be written: {error}") from error
        if path is None:
            raise TuningError("TRITONKERNELS_TUNING is off, so nothing can be kept: unset it, or set it to a file.")
        return path

    def _path(self, folder):
        """The file, in folder() unless the user names another place; None if there is to be none."""
        if is_off():
            return None
        setting = _setting()
        if not setting:
            return folder() / self._name
        named = Path(setting).absolute()
        return named if self._name == TABLE else named.parent / self._name

    def _read(self):
        with self._lock:
            if self._content is not None:
                return
            path, content = None, self._parse([])
            try:
                path = self._path(private.location)
                if path is not None:
                    content = self._content_of(path)
            except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: nested too deeply
                if path is not None:  # else there is no home folder, and nothing to read
                    log.warning("tritonkernels: %s is not used: %s", self._title, _said(path, error))
            self._content = content

    def _content_of(self, path):
        try:
            with private.opened(path) as descriptor, open(descriptor, closefd=False, encoding="utf-8") as file:
                read = json.load(file)
        except FileNotFoundError:
            return self._parse([])
        return self._parse(entries_of(read, self._schema))


def entries_of(read, schema):
    """The list of entries in what a file's JSON is; ValueError if it has another schema."""
    found = read.get("schema") if isinstance(read, dict) else None
    if found != schema or not isinstance(read.get("entries"), list):
        raise ValueError(f"its schema is {found!r:.40}, and this version of tritonkernels reads {schema}")
    return read["entries"]


def is_off():
    """Whether the user wants no table."""
    return _setting().lower() == "off"


def _setting():
    return os.environ.get("TRITONKERNELS_TUNING", "").strip()


def checked(kind, values):
    """A dataclass from JSON; ValueError if the values have not its fields, or not their types."""
    fields = dataclasses.fields(kind)
    if not isinstance(values, dict) or values.keys() != {f.name for f in fields}:
        raise ValueError(f"an entry needs the fields {', '.join(f.name for f in fields)}, and no others")
    for field in fields:
        if not isinstance(values[field.name], field.type) or isinstance(values[field.name], bool):
            raise ValueError(f"{field.name} is {values[field.name]!r:.40}")
    return kind(**values)


def _said(path, error):
    return f"{path}: {error}. Remove it, or set TRITONKERNELS_TUNING to another file or to off"


def _replace(path, content):
    """Replace the file, in one step for whoever reads it."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.stem}-", dir=path.parent)  # private for any umask
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
