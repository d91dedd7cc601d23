"""Text files of records, compressed where their name ends in .xz, as those in perf/results do."""

import lzma

from .. import processes

SUFFIX = ".xz"


def find(path):
    """The path, or that of the packed file of its name where only that one is there."""
    packed = path.with_name(path.name + SUFFIX)
    return packed if packed.exists() and not path.exists() else path


def read(path):
    """The text of a file, or of the packed one of its name."""
    path = find(path)
    if path.suffix != SUFFIX:
        return path.read_text()
    try:
        return lzma.decompress(path.read_bytes()).decode()
    except lzma.LZMAError as error:
        raise ValueError(f"{path} is not what xz writes: {error}") from None


def write(path, text):
    """Writes the file. A packed one that has the text stays as it is: another version of xz would only change its bytes."""
    if path.suffix != SUFFIX:
        processes.replace(path, text)
    elif not path.exists() or read(path) != text:
        processes.replace(path, lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
