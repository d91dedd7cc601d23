"""A copy of Triton's language and interpreter, for this library's kernels alone.

Triton's own switch, TRITON_INTERPRET or the knob behind it, concerns the whole process: every kernel that is decorated from
then on, in child processes too. tl.sum and the like stay as they were decorated when Triton was imported. And a running
interpreted kernel replaces functions and methods of triton.language, which breaks what other threads compile meanwhile.

So the modules that this concerns are executed once more. The copies import each other in place of the originals, which stay
untouched. All else, such as triton.Config, TensorDescriptor and the errors, is Triton's own.
"""

import builtins
import importlib.util
import re
import types

COPIED = re.compile(r"triton(\.knobs|\.runtime(\.jit|\.interpreter)?|\.language(\.(?!extra$)\w+)?)?")


def _knobs():
    """Triton's own, but for the one that interprets, which would go into the environment if it were set as an attribute."""
    knobs = importlib.import_module("triton.knobs")
    runtime = knobs.runtime.copy()
    vars(runtime)["interpret"] = True
    return types.SimpleNamespace(**vars(knobs) | {"runtime": runtime})


def _load(name):
    """The module of this name, of those that a copied module sees."""
    if not COPIED.fullmatch(name):
        return importlib.import_module(name)
    parent, _, child = name.rpartition(".")
    package = parent and _load(parent)  # may load this module as well
    if name not in _copies:
        spec = importlib.import_module(name).__spec__
        copy = _copies[name] = importlib.util.module_from_spec(spec)
        if parent:
            setattr(package, child, copy)  # now, because modules import each other in circles
        copy.__builtins__ = vars(builtins) | {"__import__": _import}  # what an import statement calls
        spec.loader.exec_module(copy)
    return _copies[name]


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    """The built-in __import__, with the copies."""
    full = importlib.util.resolve_name("." * level + name, globals and globals["__package__"])
    module = _load(full)
    for child in fromlist or ():
        if not hasattr(module, child):
            setattr(module, child, _load(f"{full}.{child}"))
    return module if fromlist else _load(full.partition(".")[0])


_copies = {"triton.knobs": _knobs()}

triton, tl = _load("triton"), _load("triton.language")
