"""Text files, compressed where their name ends in .xz, as the records that are checked in do."""

import lzma
import os


def read(path):
    return lzma.decompress(path.read_bytes()).decode() if _is_packed(path) else path.read_text()


def write(path, text):
    """Writes the file atomically: no reader sees half of it, and a kill leaves the old file.

    A file that has the text already stays as it is: another version of xz would only change its bytes.
    """
    if path.exists() and read(path) == text:
        return
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME) if _is_packed(path) else text.encode())
    os.replace(partial, path)


def _is_packed(path):
    return path.suffix == ".xz"
