"""The folder of built modules: a damaged file, or one that others could write, is never loaded, and every error is a typed
one."""

import ast
import errno
import os
import shutil
from pathlib import Path

import pytest

from cuda_reference import build
from tritonkernels import cache
from tritonkernels.errors import BuildError

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def replace(path, content):
    """Write another file in its place: this process may have mapped the old one."""
    path.unlink()
    path.write_bytes(content)
    path.chmod(0o600)


def flip_a_bit(b):
    content = bytearray(b.module_bytes)
    content[len(content) // 2] ^= 1
    replace(b.module, content)


def move_away(path, to):
    """Move the folder away and leave a link to it at `path`."""
    path.rename(to)
    path.symlink_to(to)


def become_a_pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def become_a_file(path):
    shutil.rmtree(path)
    path.write_text("")


def become_a_folder(path):
    path.unlink()
    path.mkdir(0o700)


def dangle(path):
    shutil.rmtree(path)
    path.symlink_to(path.parent / "nowhere")


DAMAGES = {
    "one bit of the module": flip_a_bit,
    "half a module": lambda b: replace(b.module, b.module_bytes[: len(b.module_bytes) // 2]),
    "empty module": lambda b: replace(b.module, b""),
    "no module": lambda b: b.module.unlink(),
    "no digest": lambda b: b.digest.unlink(),
    "empty digest": lambda b: replace(b.digest, b""),
    "half a digest": lambda b: replace(b.digest, b.digest.read_bytes()[:32]),
    "digest that goes on": lambda b: replace(b.digest, b.digest.read_bytes() + b"0"),
    "garbage digest": lambda b: replace(b.digest, b"\xff\x00" * 32),
    "module is a link": lambda b: move_away(b.module, b.folder / "elsewhere"),
    "digest is a link": lambda b: move_away(b.digest, b.folder / "elsewhere"),
    "entry is a link": lambda b: move_away(b.entry, b.folder / "elsewhere"),
    "entry is a dangling link": lambda b: dangle(b.entry),
    "entry is a file": lambda b: become_a_file(b.entry),
    "empty entry": lambda b: [b.module.unlink(), b.digest.unlink()],
    "module is a pipe": lambda b: become_a_pipe(b.module),
    "digest is a pipe": lambda b: become_a_pipe(b.digest),
    "module is a folder": lambda b: become_a_folder(b.module),
    "digest is a folder": lambda b: become_a_folder(b.digest),
    "group may write the module": lambda b: b.module.chmod(0o620),
    "all may write the module": lambda b: b.module.chmod(0o602),
    "all may write the digest": lambda b: b.digest.chmod(0o602),
    "group may write the entry": lambda b: b.entry.chmod(0o720),
}
GIVEN_AWAY = {
    "another's module": lambda b: os.chown(b.module, NOBODY, -1),
    "another's digest": lambda b: os.chown(b.digest, NOBODY, -1),
    "another's entry": lambda b: os.chown(b.entry, NOBODY, -1),
}


@pytest.mark.parametrize("damage", [*DAMAGES, *(pytest.param(name, marks=needs_root) for name in GIVEN_AWAY)])
def test_a_damaged_or_foreign_entry_is_built_again(builds, damage):
    builds.load()
    builds.load()
    assert builds.compiled == 1
    (DAMAGES | GIVEN_AWAY)[damage](builds)
    elsewhere = builds.folder / "elsewhere"
    before = elsewhere.exists()
    builds.load()
    assert builds.compiled == 2
    builds.load()
    assert builds.compiled == 2
    assert not builds.entry.is_symlink() and builds.module.read_bytes() == builds.module_bytes
    assert elsewhere.exists() == before, "what a link led to is left alone"


def test_the_verified_file_is_loaded_even_if_it_is_replaced(builds, monkeypatch):
    def swap_and_import(name, descriptor, original=build._import):
        builds.entry.rename(builds.folder / "elsewhere")
        builds.entry.mkdir()
        builds.module.write_text("another's code")
        return original(name, descriptor)

    monkeypatch.setattr(build, "_import", swap_and_import)
    builds.load()
    assert builds.compiled == 1


def test_an_invalid_module_is_a_typed_error(builds):
    builds.module_bytes = b"\x7fELF"
    with pytest.raises(BuildError, match="cannot be loaded"):
        builds.load()


def link_to_a_folder(path):
    path.with_name("target").mkdir(0o700)
    path.symlink_to("target")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: (path.mkdir(), path.chmod(0o777)), id="all may write"),
        pytest.param(lambda path: (path.mkdir(), path.chmod(0o770)), id="group may write"),
        pytest.param(link_to_a_folder, id="link"),
        pytest.param(lambda path: path.symlink_to("nowhere"), id="dangling link"),
        pytest.param(lambda path: path.write_text(""), id="file"),
        pytest.param(lambda path: (path.mkdir(0o700), os.chown(path, NOBODY, -1)), id="another's", marks=needs_root),
    ],
)
def test_a_folder_that_others_could_write_is_refused(builds, make):
    make(builds.folder)
    with pytest.raises(BuildError, match=r"Set TRITONKERNELS_CACHE to a folder of your own\."):
        builds.load()
    assert builds.compiled == 0
    assert "TRITONKERNELS_CACHE" in build.doctor()["cache folder"]


def test_stored_files_are_private_for_any_umask(builds):
    before = os.umask(0)
    try:
        builds.load()
    finally:
        os.umask(before)
    modes = {path.relative_to(builds.folder).suffix: path.stat().st_mode & 0o777 for path in builds.folder.rglob("*")}
    assert modes == {"": 0o700, ".so": 0o600, ".sha256": 0o600, ".lock": 0o600}
    builds.load()
    assert builds.compiled == 1


def test_a_relative_folder_and_no_home(builds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITONKERNELS_CACHE", "here")
    assert cache.folder() == tmp_path / "here"
    monkeypatch.delenv("TRITONKERNELS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(BuildError, match=r"home directory.* Set TRITONKERNELS_CACHE"):
        cache.folder()


def test_a_build_removes_leftovers_of_old_builds(builds):
    builds.folder.mkdir(0o700)
    old, young = builds.folder / ".building-old", builds.folder / ".building-young"
    for folder in (old, young):
        (folder / "deep").mkdir(parents=True)
    os.utime(old, (0, 0))
    builds.load()
    assert not old.exists() and young.exists()


def test_a_full_disk_is_a_typed_error_and_leaves_nothing(builds, monkeypatch):
    def full(recipe, folder, timeout):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(build, "_compile", full)
    with pytest.raises(BuildError, match=r"No space left on device.*Free space in .* or set TRITONKERNELS_CACHE"):
        builds.load()
    assert [path.suffix for path in builds.folder.iterdir()] == [".lock"]


def test_nothing_is_unpickled():
    """Neither package imports or calls anything that runs code from a data file. What a tuning's processes build comes to them
    from their parent, by a file that has no name."""
    banned = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "torch.load", "torch.package"}
    banned |= {"torch.jit.load", "numpy.load", "np.load", "eval", "exec"}
    safe = ast.unparse(ast.parse("numpy.load(path, allow_pickle=False)"))
    root = Path(__file__).parents[2]
    files = [*root.glob("cuda_reference/**/*.py"), *root.glob("tritonkernels/**/*.py"), *root.glob("perf/**/*.py")]
    assert len(files) > 30
    files.remove(root / "tritonkernels/choice/builders.py")
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            names += [ast.unparse(node.func)] if isinstance(node, ast.Call) else []
            found = {part for name in names for part in (name, name.split(".")[0])} & banned
            assert not found or ast.unparse(node) == safe, f"{file}: {names}"
