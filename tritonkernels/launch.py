"""Launches of Triton kernels, and the Library of this package's designs."""

import copy
import functools
import os
import threading
import types

import numpy
import torch

from . import backend, miscompiled, validate
from .errors import LaunchError
from .library import Library
from .plans import FromAddress, Launched, with_address

FOREIGN = {"maxnreg": None}  # options for ptxas, which AMD's compiler refuses
COMPILER_OPTIONS = {"enable_fp_fusion": True}  # a b + c as one FMA; Triton's default for it changes between versions
_BINDING = threading.Lock()
_HASHED, _HASHING = set(), threading.RLock()  # the Python functions of those that Triton has hashed in order
OVERLAPS = {"launch_pdl": True}  # language/overlap.py


class TritonLaunch:
    """`kernel[grid](*arguments, **constants)` with the config's tile sizes, warps and stages; nothing happens before run().

    Arguments come in the order of the kernel's signature: structs of operands (language/structs.py), TMA descriptors, numbers.
    overlaps: it may begin while kernels before it run, for which it waits by itself (language/overlap.py).
    """

    overlaps = True

    def __init__(self, kernel, grid, config, *arguments, **constants):
        self.kernel, self.grid, self.config = kernel, grid, config
        by_name = dict(zip(kernel.arg_names, arguments)) | constants
        self.values = {name: (by_name if name in by_name else config.kwargs)[name] for name in kernel.arg_names}
        if len(self.values) < len(arguments) or not by_name.keys() <= self.values.keys():
            raise TypeError(f"{kernel.__name__} takes {', '.join(kernel.arg_names)}, not {', '.join(by_name)}")

    @property
    def name(self):
        """The kernel's short name: "pack"."""
        return self.kernel.__name__.strip("_").removesuffix("_kernel")

    @property
    def options(self):
        """The compiler's options."""
        chosen = self.config.all_kwargs() | (FOREIGN if torch.version.hip else {})
        options = {k: v for k, v in chosen.items() if v is not None and k not in self.config.kwargs} | COMPILER_OPTIONS
        return options | (OVERLAPS if self.overlaps and _can_overlap() else {})

    def alone(self):
        self.overlaps = False
        return self

    def run(self):
        if backend.name() == "gpu":
            from .language import descriptor

            _hash_in_order(self.kernel)
            rounds = not descriptor.has_field() and any(map(descriptor.rounds, self.values.values()))
            if rounds or miscompiled.is_known_of():
                compiled = self.kernel.warmup(grid=self.grid, **self.values, **self.options)
                miscompiled.check(compiled)
                if rounds:
                    descriptor.set_types(compiled.metadata, self.values.values())
            return self._launched(self.kernel[self.grid](**self.values, **self.options))
        from triton.runtime.errors import InterpreterError

        with backend.INTERPRETER_LOCK, numpy.errstate(all="ignore"):  # an overflow is no error, as on a GPU
            try:
                self.kernel[self.grid](**self.values)
            except InterpreterError as error:
                cause = error
                while cause.__cause__ is not None:  # the error in a device function, not its callers'
                    cause = cause.__cause__
                what = f"{self.kernel.__name__} failed in Triton's interpreter: {cause!r}"
                raise LaunchError(f"{what}\n{LaunchError.REMEDY}") from error

    def build(self, whole=False):
        """Compile the kernel for the current GPU, and Triton 3.6's launcher of it, and load neither: kernels that only build
        would use up the memory of the GPU. The tensors may be on the meta device. `whole` is for CUDA kernels."""
        from triton.runtime import driver

        _hash_in_order(self.kernel)
        with _BINDING:  # Triton has no lock here: of two threads that are the first, one would fill caches that are replaced
            self.kernel.device_caches.__getitem__(driver.active.get_current_device())
        compiled = self.kernel.warmup(grid=self.grid, **self.values, **self.options)
        miscompiled.check(compiled)
        driver.active.launcher_cls(compiled.src, compiled.metadata)

    def _launched(self, compiled):
        """The Launched that repeats the launch without Triton; None if Triton would launch in another way."""
        if not (_has_known_launcher(type(compiled)) and _switches()[0]):
            return None
        after = (compiled.function, compiled.packed_metadata, None, None, None)  # no launch metadata and no hooks
        values = tuple(map(_with_address, self.values.values()))
        metadata = compiled.metadata
        is_pure = not (metadata.global_scratch_size or metadata.profile_scratch_size)  # which each launch allocates
        traits = {"is_pure": is_pure, "overlaps": getattr(metadata, "launch_pdl", False)}
        return Launched(compiled.run, (*self.grid, 1, 1)[:3], after, values, keeps=compiled, **traits)


def _hash_in_order(function):
    """Hash all that the function calls before itself. Up to Triton 3.7, the key of a kernel in the cache depends on that order:
    a function's constants are in its callers' keys if it was hashed before them."""
    from triton.runtime.jit import JITCallable

    with _HASHING:
        if function.fn not in _HASHED:
            _HASHED.add(function.fn)
            for name in function.fn.__code__.co_names:
                called = function.fn.__globals__.get(name)
                if isinstance(called, JITCallable):
                    _hash_in_order(called)
            hash(function)


def _can_overlap():
    """Whether the present GPU can begin a kernel while another one runs."""
    from triton.runtime import driver

    try:
        target = driver.active.get_current_target()
    except RuntimeError:  # there is no GPU
        return False
    return target.backend == "cuda" and target.arch >= 90


@functools.cache
def _has_known_launcher(compiled_kernel):
    """Whether Triton's compiled[grid](...) launches with the arguments of `_launched`, tried on a stand-in."""
    runtime, calls = _knobs().runtime, []
    stand_in = types.SimpleNamespace(function=1, packed_metadata=2, launch_metadata=lambda *_: 3, _init_handles=lambda: None)
    stand_in.run = lambda *arguments: calls.append(arguments)
    try:
        compiled_kernel.__getitem__(stand_in, (4, 5, 6))(8, 9, stream=7)
    except Exception:  # a different launcher may raise anything
        return False
    return calls == [(4, 5, 6, 7, 1, 2, 3, runtime.launch_enter_hook, runtime.launch_exit_hook, 8, 9)]


def _with_address(value):
    """A kernel's argument in the form of Launched.values."""
    from .language.descriptor import is_descriptor

    if isinstance(value, tuple) and value and isinstance(value[0], torch.Tensor):  # a struct of an operand
        return FromAddress(value[0], functools.partial(with_address, value[1:]))
    if not is_descriptor(value):
        return value
    template = copy.copy(value)
    template.base = None
    return FromAddress(value.base, functools.partial(_descriptor_at, template))


def _descriptor_at(descriptor, address):
    descriptor = copy.copy(descriptor)
    descriptor.base = _Address(address)
    return descriptor


class _Address(int):
    """An address with data_ptr(), which Triton calls on the tensor of a descriptor."""

    def data_ptr(self):
        return int(self)


@functools.cache
def _knobs():
    from triton import knobs

    return knobs


def _switches():
    """(whether no launch hooks are set, other global switches of Triton's launches); None for the interpreter."""
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


def _build_for(target):
    os.environ["TRITONKERNELS_BACKEND"] = "gpu"  # without a look for one
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    name, machine = ("amd", ("hip", target.gfx)) if target.vendor == "amd" else ("nvidia", ("cuda", target.arch))
    gpu, stand_in = GPUTarget(*machine, target.warp_size), backends[name].driver()
    stand_in.get_current_target = lambda: gpu  # by Triton's own functions, the process would open the GPU
    stand_in.get_current_device = stand_in.get_current_stream = lambda *_: 0
    driver.set_active(stand_in)


def _compiler():
    import triton

    return f"Triton {'.'.join(triton.__version__.split('.')[:2])}"


LIBRARY = Library(
    "tritonkernels",
    target=backend.target,
    runs_on=_runs_on,
    get_ready=backend.name,
    switches=_switches,
    compiler=_compiler,
    build_for=_build_for,
)
