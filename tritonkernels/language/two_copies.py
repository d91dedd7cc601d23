"""One or two copies by one launch: a second launch would wait for the last program of the first."""

from ..launch import TritonLaunch
from ..problem import needs_wide_offsets
from .triton import tl, triton


@triton.jit
def copy_one_of(copy, a, of_a, b, of_b, WIDE: tl.constexpr):
    """A program's part of its copy: copy(what is copied, where to, the part's number, WIDE). The programs of `a` come first."""
    program = tl.program_id(0)
    if b is None or program < of_a.programs:
        copy(a, of_a, program, WIDE)
    else:
        copy(b, of_b, program - of_a.programs, WIDE)


def launch_of_copies(kernel, config, copies):
    """The launch of kernel(a, of_a, b, of_b, WIDE) for one or two copies: pairs of structs, what is copied and where to, of as
    many `programs`. b and of_b are None for one."""
    structs = [struct for copy in copies for struct in copy]
    programs = sum(to.programs for _, to in copies)
    wide = needs_wide_offsets(*(struct.ptr for struct in structs))
    return TritonLaunch(kernel, (programs,), config, *(*structs, None, None)[:4], WIDE=wide)
