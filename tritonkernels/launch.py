"""How Triton designs are launched, and the Library of them."""

import copy
import functools
import types

import numpy
import torch

from . import backend, validate
from .errors import LaunchError
from .library import Library
from .plans import Around, Launched

FOREIGN = {"maxnreg": None}  # what ptxas is told, and AMD's compiler refuses to hear
COMPILER_OPTIONS = {"enable_fp_fusion": True}  # a b + c as one FMA; Triton's default for it changes between versions


class TritonLaunch:
    """`kernel[grid](*arguments, **constants)` with the config's tile sizes, warps and stages; nothing happens before run().

    Arguments come in the order of the kernel's signature: structs of operands (language/structs.py), TMA descriptors, numbers.
    """

    def __init__(self, kernel, grid, config, *arguments, **constants):
        self.kernel, self.grid, self.config = kernel, grid, config
        given = dict(zip(kernel.arg_names, arguments)) | constants
        self.values = {name: (given if name in given else config.kwargs)[name] for name in kernel.arg_names}
        if len(self.values) < len(arguments) or not given.keys() <= self.values.keys():
            raise TypeError(f"{kernel.__name__} takes {', '.join(kernel.arg_names)}, not {', '.join(given)}")

    @property
    def name(self):
        """The kernel's, for people: "pack"."""
        return self.kernel.__name__.strip("_").removesuffix("_kernel")

    @property
    def options(self):
        """What the compiler is told."""
        chosen = self.config.all_kwargs() | (FOREIGN if torch.version.hip else {})
        return {k: v for k, v in chosen.items() if v is not None and k not in self.config.kwargs} | COMPILER_OPTIONS

    def run(self):
        if backend.name() == "gpu":
            return self._again(self.kernel[self.grid](**self.values, **self.options))
        from triton.runtime.errors import InterpreterError

        with backend.INTERPRETER_LOCK, numpy.errstate(all="ignore"):  # a kernel's overflow is the kernel's, as on a GPU
            try:
                self.kernel[self.grid](**self.values)
            except InterpreterError as error:
                cause = error
                while cause.__cause__ is not None:  # a device function's error is the caller's, and so on
                    cause = cause.__cause__
                raise LaunchError(f"{self.kernel.__name__} failed in Triton's interpreter: {cause!r}") from error

    def _again(self, compiled):
        """How to launch what Triton has compiled without asking it again; None where it launches in another way than here."""
        if not (_launches_as_we_do(type(compiled)) and _switches()[0]):
            return None
        after = (compiled.function, compiled.packed_metadata, None, None, None)  # no hooks, and nothing to tell them
        values = tuple(map(_with_address, self.values.values()))
        return Launched(compiled.run, (*self.grid, 1, 1)[:3], after, values, keeps=compiled)


@functools.cache
def _launches_as_we_do(compiled_kernel):
    """Whether Triton's launcher takes what `_again` gives it: its own compiled[grid](...) is watched launching a stand-in."""
    runtime, given = _knobs().runtime, []
    stand_in = types.SimpleNamespace(function=1, packed_metadata=2, launch_metadata=lambda *_: 3, _init_handles=lambda: None)
    stand_in.run = lambda *arguments: given.append(arguments)
    try:
        compiled_kernel.__getitem__(stand_in, (4, 5, 6))(8, 9, stream=7)
    except Exception:  # whatever it is that differs
        return False
    return given == [(4, 5, 6, 7, 1, 2, 3, runtime.launch_enter_hook, runtime.launch_exit_hook, 8, 9)]


def _with_address(value):
    """A kernel's argument as Launched wants it."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    if isinstance(value, tuple) and value and isinstance(value[0], torch.Tensor):  # a struct of an operand
        return Around(value[0], functools.partial(_struct_at, value[1:]))
    if not isinstance(value, TensorDescriptor):
        return value
    of_no_tensor = copy.copy(value)
    of_no_tensor.base = None
    return Around(value.base, functools.partial(_descriptor_at, of_no_tensor))


def _struct_at(strides, address):
    return address, *strides


def _descriptor_at(descriptor, address):
    descriptor = copy.copy(descriptor)
    descriptor.base = _Address(address)
    return descriptor


class _Address(int):
    """An address that can be asked for itself, as Triton asks the tensor of a descriptor."""

    def data_ptr(self):
        return int(self)


@functools.cache
def _knobs():
    from triton import knobs

    return knobs


def _switches():
    """(nobody hooks into launches, what else counts when Triton launches and is no argument); None for the interpreter."""
    if backend.name() != "gpu":
        return None
    knobs = _knobs()
    runtime = knobs.runtime
    idle = _is_idle(runtime.launch_enter_hook) and _is_idle(runtime.launch_exit_hook)
    return idle, runtime.debug, knobs.compilation.instrumentation_mode


def _is_idle(hook):
    return hook is None or getattr(hook, "calls", None) == []


def _runs_on(tensor):
    validate.on_backend("the operands", tensor, backend.device_type(), backend.name())


LIBRARY = Library("tritonkernels", target=backend.target, runs_on=_runs_on, get_ready=backend.name, switches=_switches)
