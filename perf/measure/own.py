"""A user's own kernel in a comparison: `--contender module:function`, called as the operation is, without `out`."""

import argparse
import functools
import importlib
import sys
from collections.abc import Callable
from typing import NamedTuple

import torch

from .contenders import OWN, Contender


class Function(NamedTuple):
    name: str  # "module:function"
    call: Callable[..., torch.Tensor]

    @property
    def contender(self):
        return Contender(OWN, self.name, lambda *args, **kwargs: {"config": {}}, functools.partial(_into, self.call), False)


def _into(call, *args, out, **kwargs):
    """Calls a function that takes no `out`: the result is a tensor of its own."""
    return call(*args, **kwargs)


def function(name):
    """The Function "module:function", of a module that can be imported from the current folder; a type of argparse."""
    module, _, attribute = name.partition(":")
    if "" not in sys.path:  # an installed command looks in its own folder instead
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever the user's module raises
        raise argparse.ArgumentTypeError(f"cannot import {module!r}: {type(error).__name__}: {error}") from error
    if not callable(call := getattr(found, attribute, None)):
        raise argparse.ArgumentTypeError(f"{name}: {module} has no function {attribute!r}; write module:function")
    return Function(name, call)
