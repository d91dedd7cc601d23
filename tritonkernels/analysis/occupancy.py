"""Occupancy: how many blocks one SM holds at once, and which resource is the limit.

Allocation follows NVIDIA's calculator (cuda_occupancy.h): registers per warp in units of 256, from the quarter of the file that
belongs to the warp's scheduler; shared memory per block in units of 256 bytes, from sm_80 on of 128 and with the 1 KB that the
system adds. The carve-out for shared memory is assumed to be the largest.
"""

from typing import NamedTuple

WARP = 32
SCHEDULERS = 4  # of an SM from sm_70 on, each with its own quarter of the registers
REGISTER_UNIT = 256
THREADS_PER_BLOCK = 1024
REGISTERS_PER_THREAD = 255


class Occupancy(NamedTuple):
    """Blocks and warps per SM (0 if a block does not fit), the fraction of warp slots in use, and the limit.

    `limited_by` holds one or more of "blocks", "threads", "registers", "shared memory".
    """

    blocks: int
    warps: int
    fraction: float
    limited_by: tuple[str, ...]


def occupancy(target, threads, registers=0, shared_bytes=0):
    """Occupancy of blocks of `threads` threads with `registers` each and `shared_bytes` a block; 0 ignores a resource.

    128 registers leave 65,536 / 128 = 512 threads, half of an RTX 2080's 1024.
    """
    warps = _ceil_div(threads, WARP)
    blocks = {
        "blocks": target.blocks_per_sm or None,  # 0: an architecture that is not in the table of targets
        "threads": target.threads_per_sm // (warps * WARP) if threads <= THREADS_PER_BLOCK else 0,
        "registers": _warps_by_registers(target, registers) // warps if registers else None,
        "shared memory": _blocks_by_shared(target, shared_bytes) if shared_bytes else None,
    }
    known = {resource: limit for resource, limit in blocks.items() if limit is not None}
    fewest = min(known.values())
    return Occupancy(
        blocks=fewest,
        warps=fewest * warps,
        fraction=fewest * warps * WARP / target.threads_per_sm,
        limited_by=tuple(resource for resource, limit in known.items() if limit == fewest),
    )


def _warps_by_registers(target, registers):
    if registers > REGISTERS_PER_THREAD:
        return 0
    per_warp = _round_up(registers * WARP, REGISTER_UNIT)
    return target.registers_per_sm // SCHEDULERS // per_warp * SCHEDULERS


def _blocks_by_shared(target, shared_bytes):
    if shared_bytes > target.shared_per_block:
        return 0
    reserved, unit = (1024, 128) if target.arch >= 80 else (0, 256)
    return target.shared_per_sm // _round_up(shared_bytes + reserved, unit)


def _ceil_div(a, b):
    return -(-a // b)


def _round_up(a, unit):
    return _ceil_div(a, unit) * unit
