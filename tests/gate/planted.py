"""Faults that only Triton's sanitizers see: python -m tests.gate.planted tritonkernels --go-on, in place of tests.gate.child.

It makes two calls under the sanitizer in TRITON_INSTRUMENTATION_MODE: `planted`, and `right`, the same without its fault.
"""

import os
import sys

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from tests.gate import child
from tritonkernels.language.descriptor import describe_for_gluon
from tritonkernels.language.renamed import load_box


@gluon.jit
def _copy_kernel(box, out, RIGHT: gl.constexpr):
    """out (SIZE, SIZE) = box. Unless RIGHT, shared memory is read before the copy into it has ended."""
    SIZE: gl.constexpr = box.block_type.shape[0]
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    copied = gl.allocate_shared_memory(box.dtype, box.block_type.shape, box.layout)
    mbarrier.init(full, count=1)
    mbarrier.expect(full, box.block_type.nbytes)
    load_box(box, [0, 0], full, copied)
    mbarrier.wait(full, 0, pred=RIGHT)
    tile = copied.load(LAYOUT)
    mbarrier.wait(full, 0, pred=not RIGHT)  # the block must not end before
    mbarrier.invalidate(full)
    rows = gl.arange(0, SIZE, gl.SliceLayout(1, LAYOUT))[:, None]
    gl.store(out + rows * SIZE + gl.arange(0, SIZE, gl.SliceLayout(0, LAYOUT))[None, :], tile)


@triton.jit
def _write_kernel(out, RIGHT: tl.constexpr):
    """Each program writes 32 numbers of its own. Unless RIGHT, all write the same ones."""
    place = tl.program_id(0) * 32 if RIGHT else 0
    tl.store(out + place + tl.arange(0, 32), tl.program_id(0).to(tl.float32))


def consan(device, right):
    box = describe_for_gluon(torch.ones(64, 64, device=device), [64, 64])
    _copy_kernel[(1,)](box, torch.empty(64, 64, device=device), RIGHT=right)


def gsan(device, right):
    _write_kernel[(8,)](torch.empty(8 * 32, device=device), RIGHT=right)


def main():
    launch = {"consan": consan, "gsan": gsan}[os.environ["TRITON_INSTRUMENTATION_MODE"]]

    def fault(library, call, device):
        launch(device, call == "right")
        torch.cuda.synchronize(device)

    child.PROGRAM, child.groups, child.fault = "tests.gate.planted", lambda *_: [["planted", "right"]], fault
    return child.main()


if __name__ == "__main__":
    sys.exit(main())
