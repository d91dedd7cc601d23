"""The autograd function of every operation. Gradients and tangents are calls of operators, so those of any order exist."""

import torch
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from .rules import Form


def gradients(operator, grad, forms, tensors, arguments, wanted):
    """The gradient of each of the operator's tensors, None if it is not wanted. `tensors` are what was kept, or None."""
    formulas = operator.rules.gradients(operator.package, grad, forms, **tensors, **arguments)
    return [forms[name].fitted(formulas[name]()) if wanted[name] else None for name in operator.tensors]


class Recorded(_SingleLevelFunction):
    """apply(operator, compute, arguments, *tensors) is compute(*tensors), recorded; `arguments` are the others, by name.

    Within an operator there is only one level of torch.func's transforms, for which torch has this kind of function.
    """

    @staticmethod
    def forward(ctx, operator, compute, arguments, *tensors):
        ctx.operator, ctx.arguments = operator, arguments
        ctx.set_materialize_grads(False)
        ctx.forms = {name: t if t is None else Form.of(t) for name, t in zip(operator.tensors, tensors)}
        needed = operator.saved(ctx.needs_input_grad[3:])
        ctx.save_for_backward(*[t if need else None for need, t in zip(needed, tensors)])
        ctx.save_for_forward(*tensors)  # which torch drops as soon as it has the tangents
        if peek_interpreter_stack() is None:
            result = compute(*tensors)
        else:  # the next level may record, too
            with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
                result = compute(*tensors)
        ctx.result = result.shape, result.dtype
        return result

    @staticmethod
    def backward(ctx, grad):
        operator = ctx.operator
        if grad is None:
            return None, None, None, *(None for _ in operator.tensors)
        tensors = dict(zip(operator.tensors, ctx.saved_tensors))
        wanted = dict(zip(operator.tensors, ctx.needs_input_grad[3:]))
        return None, None, None, *gradients(operator, grad, ctx.forms, tensors, ctx.arguments, wanted)

    @staticmethod
    def jvp(ctx, _operator, _compute, _arguments, *tangents):
        operator, (shape, dtype) = ctx.operator, ctx.result
        tensors, parts = dict(zip(operator.tensors, ctx.saved_tensors)), []
        for name, tangent in zip(operator.tensors, tangents):
            if tangent is not None and name in operator.rules.addends:
                parts.append(operator.rules.addends[name](tangent, ctx.forms, **ctx.arguments))
            elif tangent is not None:
                parts.append(operator.product(tensors | {name: tangent}, ctx.arguments))
        return sum(parts[1:], parts[0]).to(dtype).expand(shape)
