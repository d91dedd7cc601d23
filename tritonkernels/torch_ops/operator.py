"""Operator: an Operation of a Library, as a function of Python and as an operator of torch."""

import ast
import contextlib
import functools
import inspect
import logging

import torch
from torch import _C
from torch._C._functorch import is_functorch_wrapped_tensor, peek_interpreter_stack
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from .. import validate
from ..choice.choose import numbers_of
from ..design import name_of
from ..errors import GradientError, TritonKernelsError
from ..plans import ROOM, is_plain
from ..problem import holds
from . import flops, sharding
from .recorded import Recorded
from .rules import Form

log = logging.getLogger("tritonkernels")

DIFFERENTIABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)  # the result's memory format follows the operands'
CHOICE = ("design", "config", "out")  # the operator's arguments that are no Rules'
NO_OUT = {"out": None}
_NOTHING = contextlib.nullcontext()
REFUSED = "Expected a value of type"  # by torch's schema, such as an int of more than 64 bits
LOWERED = (None, "fp16", "bf16")  # precisions with which autocast lowers operands; the others are of float32


class Overloads:
    """The operators of a package, by name: the overloads that return their result, which native/repeat.cpp repeats.

    By torch.ops.PACKAGE.NAME each call would look for its overload and then pass Python three times.
    """

    def __init__(self, package):
        self._operators = getattr(torch.ops, package)

    def __getattr__(self, name):
        overload = getattr(self._operators, name).default
        setattr(self, name, overload)
        return overload


class Operator:
    """Called as operator(design, config, **arguments): all arguments of the user function, in its order, `out` last.

    A plain call goes to the library at once. One that requires gradients is recorded. The others go through torch's dispatcher,
    to what `_register` has for them: those that torch traces, transforms, watches or casts, and tensors of other classes.
    """

    def __init__(self, library, operation, **served):
        self.library, self.operation, self.rules = library, operation, operation.rules
        library.serve(operation, **served)
        library.operators[operation.name] = self
        self.name, self.package = operation.name, Overloads(library.package)
        arguments = self.rules.arguments if "*" in self.rules.arguments else f"{self.rules.arguments}, *"
        schema = f"({arguments}, str? design=None, str? config=None"
        definitions = _definitions(library.package)
        definitions.define(f"{self.name}{schema}) -> Tensor", tags=TAGS)
        definitions.define(f"{self.name}.out{schema}, Tensor(a!) out) -> ()", tags=TAGS)
        self.overloads = getattr(getattr(torch.ops, library.package), self.name)
        schema = self.overloads.default._schema.arguments
        self.defaults = {argument.name: argument.default_value for argument in schema}
        self.positional = [argument.name for argument in schema if not argument.kwarg_only]
        self.tensors = [argument.name for argument in schema if "Tensor" in str(argument.type)]
        self.others = [name for name in self.defaults if name not in (*self.tensors, *CHOICE)]
        self.order = [*inspect.signature(operation.prepare).parameters]
        self._settled_others = {}  # by the keys of repeated calls: the operator's arguments but tensors
        self._through_torch = self.overloads.default._op
        self._register(definitions)

    # The function.
    def __call__(self, design, config, **arguments) -> torch.Tensor:
        if design is not None:
            design = name_of(design)
        if torch.compiler.is_compiling():
            return self._dispatched(design, config, arguments)
        result = self._repeated(design, config, arguments)
        if result is not NotImplemented:
            return result
        if _is_watched():
            return self._dispatched(design, config, arguments)
        return self.library.call(self.operation, design, config, arguments, self._unplain)

    def _repeated(self, design, config, arguments):
        """The result of a call that native/repeat.cpp repeats, else NotImplemented."""
        library = self.library
        if library.native is None or arguments["out"] is not None:
            return NotImplemented
        return library.native.call(self.name, library.switches(), design, config, *arguments.values())

    def _unplain(self, design, config, arguments, compute, key):
        """A call of tensors that require gradients, or of other classes; compute() is what it is without."""
        if key is None and not all(map(is_plain, arguments.values())):
            return self._dispatched(design, config, arguments)
        if arguments["out"] is not None:
            self._settled(design, config, arguments)
            return compute()
        others = self._settled_others.get(key)
        if others is None:
            values = self._settled(design, config, arguments)
            if len(self._settled_others) >= ROOM:
                self._settled_others.clear()
            others = {name: value for name, value in values.items() if name not in self.tensors}
            if key is not None:
                self._settled_others[key] = others
        return self._recorded(lambda *_: compute(), others | {name: arguments[name] for name in self.tensors})

    def _dispatched(self, design, config, arguments):
        out, values = arguments["out"], self._settled(design, config, arguments)
        try:
            if out is None:
                return self.functional(values)
            self.overloads.out(**values, out=out)
            return out
        except (RuntimeError, ValueError) as error:
            if type(error) is RuntimeError and isinstance(error.__cause__, TritonKernelsError):
                raise error.__cause__ from None  # DTensor has put one of its own around it
            if REFUSED in str(error) or type(error) is ValueError:
                self.operation.prepare(**arguments)  # raises an error of ours
            raise

    def _settled(self, design, config, arguments):
        """The operator's arguments for a user's; typed errors for what torch would refuse."""
        arguments = dict(arguments)
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor) and value.is_nested:  # torch would say that there is no such operator
                validate.dense(name, value)
        out = arguments.pop("out")
        for name in self.tensors:
            if arguments[name] is not None and not hasattr(type(arguments[name]), "__torch_function__"):
                raise validate.no_tensor(name, arguments[name])
        if out is not None:
            self._refuse_gradients(arguments, out)
        chosen = {"design": design and str(design), "config": None if config is None else _text_of(numbers_of(config))}
        values = self.defaults | self.rules.settled(**arguments) | chosen
        if values.get("precision") == "torch":
            values["precision"] = self._as_torchs(values[self.tensors[0]])
        if _C._get_tracing_state() is not None:  # torch.jit's, which takes no lists of the sizes that it traces: it warns of it
            values = {name: tuple(map(int, value)) if isinstance(value, tuple) else value for name, value in values.items()}
        return values

    def _as_torchs(self, tensor):
        """The precision that "torch" stands for now: backward has it, too. None under autocast, which lowers the operands then.
        Compiled code keeps "torch": its operators read torch's switch when they run."""
        if _C._is_any_autocast_enabled() and torch.is_autocast_enabled(tensor.device.type):
            return None
        return "torch" if torch.compiler.is_compiling() else self.rules.switch()

    def _refuse_gradients(self, arguments, out):
        """Raises if a gradient is asked for through `out`, where torch records nothing and would drop it silently."""
        for name, value in {**arguments, "out": out}.items():
            if not isinstance(value, torch.Tensor):
                continue
            got = "requires_grad=True" if value.requires_grad and torch.is_grad_enabled() else None
            if not torch.compiler.is_compiling():  # else the operator asks when it runs
                if is_functorch_wrapped_tensor(value):
                    got = "a tensor inside a transform of torch.func"
                elif _has_tangent(value):
                    got = "a tensor with a forward-mode tangent"
            if got:
                allowed = f"a tensor without gradients: {self.name} into an out has none"
                raise GradientError(name, got, allowed, "Call it without out, or pass .detach().")

    def shorten(self):
        """Have library.native repeat calls of the overload, too, as compiled programs make them; torch's dispatcher gets the
        others."""
        self.overloads.default._op = self.library.native.dispatched(self._through_torch, self.library.switches, self._called)

    def _called(self, *args, **kwargs):
        """The function's call that is the overload's, as a key's values; None for arguments that torch refuses."""
        if len(args) > len(self.positional) or not kwargs.keys() <= self.defaults.keys() - self.positional[: len(args)]:
            return None
        values = self._bound(args, kwargs)
        config = values["config"] and _numbers_in(values["config"])
        return self.name, self.library.switches(), values["design"], config, *self._asked(values).values()

    # What torch's dispatcher calls.
    def _register(self, definitions):
        qualified = self.overloads._qualified_op_name
        for suffix in ("", ".out"):
            definitions.impl(self.name + suffix, self._computed, "CompositeExplicitAutograd")
            torch.library.register_fake(qualified + suffix, self._fake, lib=definitions)
        definitions.impl(self.name, self._with_autograd, "Autograd", with_keyset=True)
        definitions.impl(f"{self.name}.out", self._out_with_autograd, "Autograd", with_keyset=True)
        for device in ("cpu", "cuda"):
            definitions.impl(self.name, functools.partial(self._cast, device), f"Autocast{device.upper()}")
        torch.library.register_vmap(qualified, self._batched, lib=definitions)
        flops.register(self.overloads, self._flops)
        sharding.register(self)

    def _bound(self, args, kwargs):
        """The operator's arguments by name, `out` too: torch leaves out those that have their default. Its lists are tuples."""
        bound = NO_OUT | self.defaults | dict(zip(self.positional, args)) | kwargs
        return {name: tuple(value) if type(value) is list else value for name, value in bound.items()}

    def _tensors(self, values):
        return [values[name] for name in self.tensors]

    def _asked(self, values):
        """A user's arguments for the operator's, in the order of the user function."""
        asked = self.rules.asked(**values)
        return {name: asked[name] for name in self.order}

    def functional(self, values):
        """The operator of these arguments, by name."""
        positional, others = self._split(values)
        return self.overloads.default(*positional, **others)

    def _split(self, values):
        """(arguments in torch's order, keyword arguments) for the default overload."""
        others = {name: value for name, value in values.items() if name not in self.positional and name != "out"}
        return [values[name] for name in self.positional], others

    def _computed(self, *args, **kwargs):
        values = self._bound(args, kwargs)
        config, asked = values["config"] and _numbers_in(values["config"]), self._asked(values)
        result = self._repeated(values["design"], config, asked)
        if result is NotImplemented:
            result = self.library.call(self.operation, values["design"], config, asked)
        return result if values["out"] is None else None

    def _fake(self, *args, **kwargs):
        values = self._bound(args, kwargs)
        result = self.operation.prepare(**self._asked(values)).result
        return result if values["out"] is None else None

    def _with_autograd(self, keyset, *args, **kwargs):
        below, values = keyset & _C._after_autograd_keyset, self._bound(args, kwargs)
        if not self._differentiated(values):
            return self.overloads.default.redispatch(below, *args, **kwargs)

        def compute(*tensors):
            positional, others = self._split(values | dict(zip(self.tensors, tensors)))
            with _C._AutoDispatchBelowAutograd():
                return self.overloads.default.redispatch(below, *positional, **others)

        return self._recorded(compute, values)

    def _out_with_autograd(self, keyset, *args, **kwargs):
        values = self._bound(args, kwargs)
        self._refuse_gradients({name: values[name] for name in self.tensors}, values["out"])
        return self.overloads.out.redispatch(keyset & _C._after_autograd_keyset, *args, **kwargs)

    def _differentiated(self, values):
        """The tensors that require a gradient or have a tangent, as pairs with their names."""
        given, enabled = [(name, values[name]) for name in self.tensors if values[name] is not None], torch.is_grad_enabled()
        return [(name, tensor) for name, tensor in given if (enabled and tensor.requires_grad) or _has_tangent(tensor)]

    def _recorded(self, compute, values):
        """compute(*tensors), recorded if one requires a gradient or has a tangent."""
        tensors, differentiated = self._tensors(values), self._differentiated(values)
        if not differentiated:
            return compute(*tensors)
        for name, tensor in differentiated:
            if name in self.rules.constants:
                raise GradientError(name, "requires_grad=True", "a tensor without: it has no gradient", "Pass .detach().")
            if tensor.dtype not in DIFFERENTIABLE:
                raise GradientError(name, f"requires_grad=True of {tensor.dtype}", "a type with a backward", "Pass .detach().")
        if outer := self.rules.outer and self.rules.outer(**values):
            function, values = outer
            return function(self.functional(values))
        arguments = {name: values[name] for name in self.others if name in values}
        if peek_interpreter_stack() is None:
            return Recorded.apply(self, compute, arguments, *tensors)
        with enable_single_level_autograd_function():
            return Recorded.apply(self, compute, arguments, *tensors)

    def recording(self, design, config, arguments):
        """native.teach's `backward`, `saves` and `switches` of such calls, which hold no tensor; nothing where gradients are
        torch's or refused."""
        values = self._settled(design, config, arguments)
        present = [name for name, value in arguments.items() if isinstance(value, torch.Tensor)]
        refused = any(values[name].dtype not in DIFFERENTIABLE for name in present)
        if refused or (self.rules.outer and self.rules.outer(**values)):
            return ()
        forms = {name: values[name] if values[name] is None else Form.of(values[name]) for name in self.tensors}
        others = {name: values[name] for name in self.others if name in values}

        def by_name(of_present, absent):
            return dict.fromkeys(self.tensors, absent) | dict(zip(present, of_present))

        def backward(grad, kept, wanted):
            formulas = self.rules.gradients(self.package, grad, forms, **by_name(kept, None), **others)
            return tuple(formulas[name]() if want else None for name, want in zip(present, wanted))

        def saves(needed):
            kept = dict(zip(self.tensors, self.saved(tuple(by_name(needed, False).values()))))
            return tuple(kept[name] for name in present)

        return backward, saves, self.library.switches

    @functools.lru_cache(64)  # noqa: B019, an operator lives as long as the process
    def saved(self, needed):
        """Whether the gradients need each tensor: it is a factor, and so is another one that needs a gradient."""
        factors = [name for name in self.tensors if name not in (*self.rules.addends, *self.rules.constants)]
        wanted = {name for name, need in zip(self.tensors, needed) if need and name in factors}
        return [name in factors and bool(wanted - {name}) for name in self.tensors]

    def product(self, tensors, arguments):
        """The result of these tensors without addends: what it gains where one of them is the tangent of a factor."""
        nothing = dict.fromkeys((*self.rules.addends, *self.rules.constants, "beta"))
        return self.functional(self.defaults | arguments | tensors | {name: None for name in nothing if name in self.defaults})

    def _cast(self, device, *args, **kwargs):
        """Under autocast: operands lowered, or raised to float32 for a precision that is float32's."""
        values = self._bound(args, kwargs)
        lowered = self.rules.lowered and values.get("precision") in LOWERED
        dtype = torch.get_autocast_dtype(device) if lowered else torch.float32
        cast = {name: values[name].to(dtype) for name in self.tensors if _is_cast(name, values[name], device)}
        with _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet(getattr(_C.DispatchKey, f"Autocast{device.upper()}"))):
            return self.functional(values | cast)

    def _batched(self, info, in_dims, *args, **kwargs):
        values = self._bound(args, kwargs)
        dims = dict.fromkeys(self.tensors) | {n: d for n, d in zip(self.positional, in_dims) if n in self.tensors}
        is_empty, size = holds(info.batch_size == 0), info.batch_size
        if is_empty:  # neither torch.stack nor a size of -1 can be of nothing: a batch of one, of which nothing is kept
            size, values = 1, values | {n: _with_zeros(values[n], dim) for n, dim in dims.items() if dim is not None}
        given = {name: value for name, value in values.items() if name not in CHOICE}
        chosen = any(values[name] is not None for name in CHOICE)
        result = None if chosen else self.rules.batched(self.package, size, dims, **given)
        if result is None:
            _say_once(self.overloads)
            ways = {name: values[name].unbind(dim) for name, dim in dims.items() if dim is not None}
            each = (values | dict(zip(ways, tensors)) for tensors in zip(*ways.values()))
            result = torch.stack([self.functional(call) for call in each])
        return result[:0] if is_empty else result, 0

    def _flops(self, *args, out_val=None, out=None, **kwargs):
        values = {name: value for name, value in self._bound(args, kwargs).items() if name not in CHOICE}
        return self.rules.flops(out_val if out is None else out, **values)


@functools.cache
def _definitions(package):
    return torch.library.Library(package, "FRAGMENT")


@functools.cache
def _say_once(overloads):
    log.warning("tritonkernels: vmap of %s runs one call after the other, as its designs have no such batch", overloads)


def _text_of(numbers):
    """A config as an argument of an operator: "BM=128 STAGED=True"; in words that torch.compile can trace."""
    return " ".join([f"{name}={value!r}" for name, value in numbers.items()])


def _numbers_in(text):
    return {name: ast.literal_eval(value) for name, value in (word.split("=") for word in text.split())}


def _is_watched():
    """Whether torch wants to see operators: where calls are traced, in modes of functions, autocast, profiles."""
    return bool(
        is_traced() or _C._len_torch_function_stack() or _C._is_any_autocast_enabled() or _C._autograd._profiler_enabled()
    )


def is_traced():
    """Whether torch may make something else of a call than its result: in modes, transforms, forward-mode levels, traces."""
    return bool(
        _C._len_torch_dispatch_stack()
        or forward_ad._current_level >= 0
        or peek_interpreter_stack() is not None
        or _C._get_tracing_state() is not None
    )


def _has_tangent(tensor):
    """Asks the tensor, not forward_ad: its level is Python's, and compiled code opens levels in C++. Modes do not see it."""
    if tensor.layout != torch.strided or tensor.is_nested:  # refused later
        return False
    with _C._DisableTorchDispatch() if _C._len_torch_dispatch_stack() else _NOTHING:
        return _C._VariableFunctions._unpack_dual(tensor, 0)[1] is not None  # torch has one level


def _with_zeros(tensor, dim):
    """An empty batch with one element, of zeros."""
    return torch.cat((tensor, tensor.new_zeros([1 if d == dim else size for d, size in enumerate(tensor.shape)])), dim)


def _is_cast(name, tensor, device):
    """Whether autocast casts it: as torch's, floats of at least 16 bits but float64; no scales and no planes of B."""
    if tensor is None or name.startswith(("scale", "b_")):
        return False
    return tensor.device.type == device and tensor.dtype in (torch.float16, torch.bfloat16, torch.float32)
