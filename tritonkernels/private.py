"""The user's cache folder, and files that only the user can write."""

import os
import stat
from contextlib import contextmanager
from pathlib import Path

from .errors import CacheError


def location() -> Path:
    """Where the folder is, or would be; RuntimeError without a home folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("TRITONKERNELS_CACHE") or Path(base) / "tritonkernels").absolute()


def folder() -> Path:
    """The folder: created if missing, owned by the user and writable for nobody else."""
    remedy = "Set TRITONKERNELS_CACHE to a folder of your own."
    try:
        path = location()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
        raise CacheError(f"the cache folder cannot be created: {error}. {remedy}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise CacheError(f"the cache folder {path} is a symbolic link or belongs to another user. {remedy}")
    if status.st_mode & 0o022:
        raise CacheError(f"the cache folder {path} is writable for others. {remedy}")
    if not os.access(path, os.W_OK | os.X_OK):
        raise CacheError(f"the cache folder {path} is not writable. {remedy}")
    return path


@contextmanager
def opened(path, flags=0, dir_fd=None):
    """A descriptor of a file that only the user can write, else an OSError. Follows no link and does not block on a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | flags, dir_fd=dir_fd)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(f"{path} could be another user's")
        yield descriptor
    finally:
        os.close(descriptor)
