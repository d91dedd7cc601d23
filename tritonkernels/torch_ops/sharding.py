"""How torch.distributed's DTensor may shard the operands of an operator: registered when a user imports DTensor.

Every operation is a sum of products, as those of torch.einsum are: Rules.labels names the dimensions of operands and result.
Ranks that share out a label of the result have slices of it. Ranks that share out a label that is summed over have partial
results, which DTensor adds up when they are needed. Each partial result is rounded to the result's type, and one of fp16 may
overflow where the sum would not. The error of the sum is at most that of its p partial results, plus that of adding p numbers
of the result's type and of dividing the addend by p; integers stay exact.

An operator says what is possible on one dimension of the mesh. DTensor chooses for all of them what moves the least data.
"""

import functools
import logging
import math

from .on_import import on_import
from .rules import GROUPS

log = logging.getLogger("tritonkernels")


def register(operator):
    on_import("torch.distributed.tensor", functools.partial(_try_to_register, operator))


def _try_to_register(operator):
    """Importing torch.compile imports DTensor: it must not fail because a later torch has other names for what we need here."""
    try:
        _register(operator)
    except (AttributeError, ImportError) as error:
        log.warning("tritonkernels: %s cannot be sharded by the DTensor of this torch: %s", operator.overloads, error)


def _register(operator):
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
    from torch.distributed.tensor.experimental import register_sharding

    overload, propagator = operator.overloads.default, DTensor._op_dispatcher.sharding_propagator
    adjusters = getattr(propagator, "op_to_scalar_shape_adjuster", None)  # torch 2.13 has it, 2.11 does not
    register_sharding(overload)(functools.partial(_placements, operator, adjusters is not None))
    # DTensor looks results up by arguments, by default without those before the first int and without keywords other than ints:
    # a call of another stride or out_dtype would get a wrong shape or type. Nothing depends on alpha and beta.
    schema = overload._schema.arguments
    options = [argument.name for argument in schema if argument.kwarg_only and argument.name not in ("alpha", "beta")]
    propagator.op_to_schema_info[overload] = RuntimeSchemaInfo(static_argnum=0, static_kwargkey=options)
    # What a rank gets instead of the caller's: the size of its part of the result, and the number of its groups.
    for index, argument in enumerate(schema):
        if argument.name.endswith("_size"):
            propagator.op_to_shape_and_stride_idx[overload] = index
        if argument.name == GROUPS and adjusters is not None:
            adjusters[overload] = functools.partial(_with_own_groups, operator, index)


def _placements(operator, shares_groups, *args, **kwargs):
    """([the result's placement], [every argument's placement]) of each possible way, on one dimension of the mesh."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    values, labels = _read(operator, args, kwargs)
    result, addends = labels.pop("result"), [name for name in labels if name in operator.rules.addends]
    # The addend of a sum of partial results is the sum of their addends: DTensor gives each rank C / p, but of floats only.
    is_linear = values.get("activation") is None and all(values[name].tensor_meta.dtype.is_floating_point for name in addends)

    def way(of_result, of_tensor):
        return [of_result], [of_tensor(name) if name in labels else None for name in operator.positional[: len(args)]]

    def is_possible(label):
        if label == GROUPS:  # on the other dimensions of the mesh, too
            return shares_groups and values[GROUPS] % values[operator.tensors[0]].mesh.size() == 0
        return is_linear or label in result

    def shared(label):
        def of_tensor(name):
            if label in labels[name]:
                return Shard(labels[name].index(label))
            return Replicate() if label in result or name not in addends else Partial()

        return way(Shard(result.index(label)) if label in result else Partial(), of_tensor)

    used = {label: None for of_tensor in labels.values() for label in of_tensor if label is not None}
    return [way(Replicate(), lambda name: Replicate()), *map(shared, filter(is_possible, used))]


def _with_own_groups(operator, index, specs, schema):
    """The call of one rank, with the number of its own groups."""
    values, labels = _read(operator, schema.args_schema, schema.kwargs_schema)
    labels.pop("result")
    for name, of_tensor in labels.items():
        if GROUPS in of_tensor:
            dim, spec = of_tensor.index(GROUPS), values[name]
            ranks = math.prod(spec.mesh.size(i) for i, placement in enumerate(spec.placements) if placement.is_shard(dim))
            arguments = list(schema.args_schema)
            arguments[index] = values[GROUPS] // ranks
            return type(schema)(schema.op, tuple(arguments), schema.kwargs_schema)
    return schema


def _read(operator, args, kwargs):
    """The operator's arguments by name, and the labels of the tensors among them and of the result."""
    values = operator._bound(args, kwargs)
    labels = operator.rules.labels(**values)
    return values, {name: of_tensor for name, of_tensor in labels.items() if name == "result" or values.get(name) is not None}
