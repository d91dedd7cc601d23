"""Configs in words: as a command's argument, as text, and the legal ones nearest to one that is not."""

import argparse
import ast
import itertools

from tritonkernels.choice.choose import distance
from tritonkernels.design import as_dict

MOST = 8  # that are named in place of an unknown one


def number(text):
    """(name, value) of "BLOCK_M=64", as the type of a command's argument; some values are names: A_TILE=PaddedTile."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"{text} is not of the form BLOCK_M=64")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def words(config):
    """The config in the form that number() reads."""
    return " ".join(f"{name}={value}" for name, value in config.items() if name != "num_ctas")


def nearest(config, design, problem, target):
    """[(distance, dict)] of the design's configs, the nearest to `config` first."""
    known = map(as_dict, design.configs(problem, target))
    return sorted(((distance(config, own), own) for own in known), key=lambda pair: pair[0])[:MOST]


def lines(rows):
    """The nearest over all designs, from [(name of a design, its nearest())]."""
    known = [(distance, f"{name}: {words(config)}") for name, found in rows for distance, config in found]
    return [line for _, line in itertools.islice(sorted(known, key=lambda pair: pair[0]), MOST)]
