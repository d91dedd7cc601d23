"""Resources, instructions and loops of a compiled kernel. Reads cubins of Triton and of nvcc; needs no GPU.

The disassembler is the cuobjdump in Triton's wheel.
"""

import collections
import itertools
import re
import subprocess
import tempfile
from dataclasses import dataclass

MATH = (
    "FFMA",
    "FMUL",
    "FADD",
    "HMMA",
    "HGMMA",
    "IMMA",
    "IGMMA",
    "QGMMA",
    "QMMA",
    "DMMA",
    "BMMA",
    "DFMA",
    "HFMA2",
    "UTCHMMA",
    "UTCIMMA",
    "UTCQMMA",
)
TENSOR = ("HMMA", "HGMMA", "IMMA", "IGMMA", "QGMMA", "QMMA", "DMMA", "BMMA", "UTCHMMA", "UTCIMMA", "UTCQMMA")
SHARED = ("LDS", "STS", "STSM")  # LDSM is among LDS
GLOBAL = ("LDG", "STG", "LD.", "ST.", "UTMA", "UBLKCP", "RED", "ATOM")
LOCAL = ("LDL", "STL")  # traffic of spilled registers


@dataclass(frozen=True)
class Code:
    """One kernel's machine code."""

    name: str
    registers: int  # per thread
    stack_bytes: int  # per thread: spills and arrays in local memory
    shared_bytes: int  # per block, static; without the 1 KB that the system reserves from sm_80 on
    instructions: tuple[tuple[int, str], ...]  # (address, instruction without its predicate)
    predicates: dict[int, str]  # address -> @P0 or the like, of the instructions that have one

    def loops(self):
        """(first, last) address of every backward branch's body. One that spans an EXIT is none: it comes back from behind the
        kernel's end, where a wait is repeated."""
        ends = [address for address, text in self.instructions if text == "EXIT" and address not in self.predicates]
        for address, text in self.instructions:
            branch = re.match(r"BRA\S*\s.*?(0x[0-9a-f]+)", text)
            if branch and int(branch[1], 16) <= address and not any(int(branch[1], 16) <= end <= address for end in ends):
                yield int(branch[1], 16), address

    def hot_loop(self):
        """How often each opcode occurs in the hot loop."""
        return _mix(self.hot_instructions())

    def hot_instructions(self):
        """The instructions of the hot loop, without the loops inside it.

        Of the loops with at least half as much arithmetic as any, it is the innermost: a persistent kernel's loop over tiles
        may have more than its loop over K, because a slice is peeled into it. A tensor-core instruction counts as 1024, or else
        an epilogue's activation would outweigh a short loop over K.
        """
        loops = set(self.loops())
        inside = {x: [y for y in loops - {x} if x[0] <= y[0] and y[1] <= x[1]] for x in loops}
        bodies = {x: self._body(x, inside[x]) for x in loops}
        mixes = {x: _mix(body) for x, body in bodies.items()}
        most = max(map(arithmetic, mixes.values()), default=0)
        hot = [x for x in loops if 2 * arithmetic(mixes[x]) >= most]
        depth = {x: sum(x in inner for inner in inside.values()) for x in loops}
        best = max(hot, key=lambda x: (depth[x], arithmetic(mixes[x]), mixes[x].total()), default=None)
        return bodies.get(best, [])

    def _body(self, loop, inner):
        return [
            (address, text)
            for address, text in self.instructions
            if loop[0] <= address <= loop[1] and not any(first <= address <= last for first, last in inner)
        ]

    def listing(self):
        """The hot loop as lines of text; of a run of more than three of one opcode the first two, and how many follow."""
        for opcode, run in itertools.groupby(self.hot_instructions(), key=_opcode):
            run = list(run)
            shown = run if len(run) <= 3 else run[:2]
            for address, text in shown:
                yield f"{address:04x} {self.predicates.get(address, ''):>5} {text}"
            if len(run) > len(shown):
                yield f"           {opcode} ... {len(run) - len(shown)} more"


def _opcode(instruction):
    return instruction[1].split()[0]


def _mix(instructions):
    return collections.Counter(map(_opcode, instructions))


def arithmetic(mix):
    """The number of instructions that multiply or add; one of a tensor core counts as 1024."""
    return count(mix, MATH) + 1023 * count(mix, TENSOR)


def count(mix, opcodes):
    """The number of instructions whose opcode begins with one of `opcodes`."""
    return sum(n for opcode, n in mix.items() if opcode.startswith(opcodes))


def share(mix, opcodes):
    """The share of these opcodes in all instructions."""
    return count(mix, opcodes) / mix.total() if mix else 0.0


def read(cubin):
    """The Codes of a cubin (bytes), by mangled name."""
    listing = _cuobjdump("--dump-sass", cubin)
    codes = {}
    system = 1024 if int(re.search(r"sm_(\d+)", listing)[1]) >= 80 else 0
    usage = resource_usage(cubin)
    for name, body in re.findall(r"Function : (\S+)\n(.*?)(?=\n\s*Function : |\Z)", listing, re.DOTALL):
        lines = re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([^;]*?)\s*;", body, re.MULTILINE)
        instructions = tuple((int(address, 16), text) for address, _, text in lines)
        predicates = {int(address, 16): predicate.strip() for address, predicate, _ in lines if predicate}
        registers, stack, shared = usage[name]
        codes[name] = Code(name, registers, stack, max(0, shared - system), instructions, predicates)
    return codes


def resource_usage(cubin):
    """{mangled name: (registers, bytes of stack, bytes of shared memory)}: a hundred times faster than read()."""
    listed = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", _cuobjdump("--dump-resource-usage", cubin))
    return {name: tuple(map(int, numbers)) for name, *numbers in listed}


def _cuobjdump(option, cubin):
    import triton

    tool = triton.knobs.nvidia.cuobjdump.path
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([tool, option, file.name], capture_output=True, text=True, check=True).stdout
