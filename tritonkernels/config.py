"""Configs that are made once: what follows from a config alone is kept by the object, for all problems that may have it."""

import functools

import triton

from .choice.work import KNOWN
from .frozen import FrozenDict


class Config(triton.Config):
    """A triton.Config that is hashed as the object that it is: its numbers take as long as the Work of a kernel."""

    __hash__ = object.__hash__


def config_of(numbers, num_warps=4, num_stages=3, maxnreg=None):
    """The Config of these numbers, the same one for the same numbers."""
    return _made(tuple(numbers.items()), num_warps, num_stages, maxnreg)


@functools.lru_cache(KNOWN)
def config_with(config, **more):
    """The Config with more numbers, or other ones."""
    return config_of(config.kwargs | more, config.num_warps, config.num_stages, config.maxnreg)


@functools.lru_cache(KNOWN)
def _made(numbers, num_warps, num_stages, maxnreg):
    return Config(FrozenDict(numbers), num_warps=num_warps, num_stages=num_stages, maxnreg=maxnreg)
