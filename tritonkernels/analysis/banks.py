"""Bank conflicts of a warp's access to shared memory: 32 banks, each serves one 4-byte word at a time.

Lanes that access the same word share it (broadcast); different words of one bank are served one after the other. Conflicts
count only among the lanes of a phase: 32 lanes at up to 4 bytes each, 16 at 8 bytes, 8 at 16 bytes.
"""

from collections import Counter

from .warp import phases

BANKS = 32
WORD = 4


def degrees(address, width=4):
    """Conflict degree of each phase of an access, lane -> byte address: the most distinct words in one bank.

    1 is conflict-free, n is an n-way conflict, 0 a phase without active lanes.
    """
    return [_degree(phase) for phase in phases(address, width)]


def wavefronts(address, width=4):
    """Passes through shared memory: the sum of the degrees. Without conflicts, one per phase with active lanes."""
    return sum(degrees(address, width))


def _degree(phase):
    words = {at // WORD for at in phase}  # each lane's first word: as lanes are aligned, the others conflict in the same way
    return max(Counter(word % BANKS for word in words).values(), default=0)
