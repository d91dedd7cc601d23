"""Types of argparse, which refuse before minutes of work what would end in an error: a file that cannot be written, too."""

import argparse
import math
import os
from pathlib import Path


def writable(name):
    """The Path; a type of argparse."""
    path = Path(name)
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir():
        raise argparse.ArgumentTypeError(f"cannot write {name}: it is a folder, or its folder does not exist")
    if not all(os.access(each, os.W_OK) for each in (folder, path) if each.exists()):
        raise argparse.ArgumentTypeError(f"cannot write {name}: permission denied")
    return path


def folder(name):
    """The Path of one that is there or can be made; a type of argparse."""
    path = Path(name)
    there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write into {name}: {there} is no folder, or permission denied")
    return path


def count(text):
    """A whole number above zero; a type of argparse."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def positive(unit):
    """The type of a finite number of `unit` above zero."""

    def number(text):
        value = float(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text} is not a positive number of {unit}")
        return value

    return number
