"""Designs that are fast on some layouts only may copy operands of others first: configs with PACKED, of both packages.

A kernel that stages slices of B in shared memory reads them by rows. A column-major B, as the weight of a linear layer is, is
then read an element at a time or stored with bank conflicts, slice by slice and block by block. A copy transposes it once, for
8 bytes an element (language/packed.py says what that is worth); the model of time knows both, and chooses.
"""

import dataclasses
import functools

from ...choice.work import KNOWN, KNOWN_PROBLEMS, copy, kept

PACKED = "PACKED"
QUAD = 4  # elements that are read at once


def in_rows(layout, columns):
    """Whether the rows of a matrix of this layout begin at quads, if nothing lies between them."""
    return layout == "row" and columns % QUAD == 0


def is_packed(config):
    return PACKED in _numbers(config)


def _numbers(config):
    """The numbers of a config of either package, without warps and stages."""
    return config if isinstance(config, dict) else config.kwargs


def may_pack(design, packs, made, rows_of):
    """The design with further configs, which first pack operands.

    packs    problem -> those that are packed, of "a" and "b"; configs with PACKED are for problems that have such
    made     (config, numbers) -> the config with these numbers instead of its own, the same object for the same ones
    rows_of  matrix -> (the launches that copy it, if any, it with rows that begin at quads)
    """

    @kept
    def with_packed(config):
        return made(config, {**_numbers(config), PACKED: True})

    @kept
    def own_of(config):
        return made(config, {name: value for name, value in _numbers(config).items() if name != PACKED})

    def configs(problem, target):
        own = list(design.configs(problem, target))
        return [*own, *map(with_packed, own)] if packs(problem) else own

    def launches(problem, config, a, b, c, out):
        if is_packed(config):
            names, operands = packs(problem), {"a": a, "b": b}
            for name in names:
                copies, operands[name] = rows_of(operands[name])
                yield from copies
            yield from design.launches(problem, own_of(config), *operands.values(), c, out)
        else:
            yield from design.launches(problem, config, a, b, c, out)

    @functools.lru_cache(KNOWN_PROBLEMS)
    def copies(problem):
        sizes = {"a": (problem.m, problem.k), "b": (problem.k, problem.n)}
        return [copy(1, *sizes[name], problem.dtype.itemsize) for name in packs(problem)]

    own_work = functools.lru_cache(KNOWN)(design.work)  # which is the same for every layout

    def work(problem, config, target):
        if not is_packed(config):
            return own_work(problem, config, target)
        return (*copies(problem), *own_work(problem, own_of(config), target))

    def tile(config):
        return design.tile(own_of(config) if is_packed(config) else config)

    return dataclasses.replace(design, configs=configs, launches=launches, work=work, tile=tile if design.tile else None)
