"""The folder of built modules: private, atomic, verified on every load.

What lies there is executed. So it is used only if it is ours and nobody else can write it, and it is loaded through the
descriptor that it was verified by: what was read is what runs, whatever happens to its name meanwhile. Anything else in
an entry's place is a miss, and built again. An entry is filled in a directory of its own and appears by a rename, so
neither a killed build nor another process can leave anything that a later one would trip over.
"""

import hashlib
import os
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from tritonkernels.errors import BuildError

_STALE_SECONDS = 86400


def folder() -> Path:
    """Where modules are kept: a directory of ours that only we can write, made if need be."""
    remedy = "Set TRITONKERNELS_CACHE to a folder of your own."
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        path = Path(os.environ.get("TRITONKERNELS_CACHE") or Path(base) / "tritonkernels").absolute()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        raise BuildError(f"the cache folder cannot be made: {error}. {remedy}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise BuildError(f"the cache folder {path} is a symbolic link or belongs to another user. {remedy}")
    if status.st_mode & 0o022:
        raise BuildError(f"the cache folder {path} is writable for others. {remedy}")
    if not os.access(path, os.W_OK | os.X_OK):
        raise BuildError(f"the cache folder {path} is not writable. {remedy}")
    return path


def find(name, suffix):
    """An open descriptor of the entry's name.suffix, verified, at its beginning, or None."""
    try:
        with (
            _opened(folder() / name, os.O_DIRECTORY) as entry,
            _opened(f"{name}.sha256", dir_fd=entry) as digest,
            _opened(f"{name}{suffix}", dir_fd=entry) as file,
        ):
            return os.dup(file) if os.read(digest, 65) == _sha256(file) else None
    except OSError:
        return None


def store(name, fill, suffix):
    """Make the entry: `fill(directory)` writes name.suffix there."""
    cache = folder()
    _remove_stale(cache)
    try:
        private = Path(tempfile.mkdtemp(prefix=".building-", dir=cache))
        try:
            fill(private)
            result, digest = private / f"{name}{suffix}", private / f"{name}.sha256"
            with open(result, "rb") as file:
                digest.write_bytes(_sha256(file.fileno()))
            result.chmod(0o600)  # whatever the umask
            digest.chmod(0o600)
            for leftover in {*private.glob("*.o")} - {result}:
                leftover.unlink()
            _discard(cache / name)
            private.rename(cache / name)
        finally:
            shutil.rmtree(private, ignore_errors=True)
    except OSError as error:
        raise BuildError(f"{name} cannot be stored: {error}. Free space in {cache} or set TRITONKERNELS_CACHE.") from error


@contextmanager
def locked(name, seconds):
    """An exclusive lock between processes and threads, waited for that long; the kernel releases it when its holder dies."""
    from filelock import FileLock, Timeout  # not with the package, whose import is torch's and no more

    path = folder() / f"{name}.lock"
    try:
        held = FileLock(path, mode=0o600).acquire(timeout=seconds)
    except Timeout:
        raise BuildError(f"another process has been building {name} for too long; see TRITONKERNELS_BUILD_TIMEOUT.") from None
    except OSError as error:
        raise BuildError(f"{path} cannot be opened: {error}. Remove it.") from error
    with held:
        yield


@contextmanager
def _opened(path, flags=0, dir_fd=None):
    """A descriptor of what is ours and only ours to write, else an OSError. Follows no link and waits for no pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags, dir_fd=dir_fd)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(f"{path} could be another user's")
        yield descriptor
    finally:
        os.close(descriptor)


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
            pass  # another process was faster, or it is not ours to remove
