"""The folder of built modules: private, atomic, verified on every load.

Its files are executed. So a file is used only if the user owns it and nobody else can write it, and it is loaded through the
descriptor by which it was verified, so that replacing it meanwhile has no effect. Anything else is a cache miss, and is built
again. An entry is filled in a temporary directory and renamed, so that a killed build leaves nothing that a later one could
use.
"""

import hashlib
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from . import private
from .errors import BuildError, CacheError
from .private import opened

_STALE_SECONDS = 86400


def folder() -> Path:
    """The folder of modules: created if missing, owned by the user and writable for nobody else."""
    try:
        return private.folder()
    except CacheError as error:
        raise BuildError(str(error)) from error


def find(name, suffix):
    """An open descriptor of the entry's name.suffix, verified, at its beginning, or None."""
    try:
        with (
            opened(folder() / name, os.O_DIRECTORY) as entry,
            opened(f"{name}.sha256", dir_fd=entry) as digest,
            opened(f"{name}{suffix}", dir_fd=entry) as file,
        ):
            return os.dup(file) if os.read(digest, 65) == _sha256(file) else None
    except OSError:
        return None


def store(name, fill, suffix):
    """Create the entry: `fill(directory)` writes name and suffix there."""
    cache = folder()
    _remove_stale(cache)
    try:
        private = Path(tempfile.mkdtemp(prefix=".building-", dir=cache))
        try:
            fill(private)
            result, digest = private / f"{name}{suffix}", private / f"{name}.sha256"
            with open(result, "rb") as file:
                digest.write_bytes(_sha256(file.fileno()))
            result.chmod(0o600)  # for any umask
            digest.chmod(0o600)
            for leftover in {*private.glob("*.o"), *private.glob("*.gch")} - {result}:
                leftover.unlink()
            _discard(cache / name)
            private.rename(cache / name)
        finally:
            shutil.rmtree(private, ignore_errors=True)
    except OSError as error:
        raise BuildError(f"{name} cannot be stored: {error}. Free space in {cache} or set TRITONKERNELS_CACHE.") from error


@contextmanager
def locked(name, seconds):
    """An exclusive lock between processes and threads, with a timeout; the operating system releases it when its holder
    dies."""
    from filelock import FileLock, Timeout  # imported here, so that importing the package stays cheap

    path = folder() / f"{name}.lock"
    try:
        held = FileLock(path, mode=0o600).acquire(timeout=seconds)
    except Timeout:
        raise BuildError(f"another process has been building {name} for too long; see TRITONKERNELS_BUILD_TIMEOUT.") from None
    except OSError as error:
        raise BuildError(f"{path} cannot be opened: {error}. Remove it.") from error
    with held:
        yield


def _sha256(descriptor):
    with open(descriptor, "rb", closefd=False) as file:
        content = file.read()
        file.seek(0)
    return hashlib.sha256(content).hexdigest().encode()


def _discard(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_stale(cache):
    for left in cache.glob(".building-*"):
        try:
            if time.time() - left.lstat().st_mtime > _STALE_SECONDS:
                _discard(left)
        except OSError:
            pass  # another process was faster, or it cannot be removed
