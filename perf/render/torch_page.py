"""docs/torch.md: our operations as operators of torch, what works with them, by the tests of that, and what it costs."""

from tritonkernels import OPS

from ..measure import measured, records
from ..measure.in_torch import SIZE
from ..show.table import markdown as as_table

TESTS = "tests/torch_ops"
INTRODUCTION = """\
# With PyTorch

`make docs` writes this page. Its table comes from the tests in [{tests}](../{tests}).

Every operation is a function on torch tensors and an operator of torch at once: `torch.ops.tritonkernels.gemm`, and
`torch.ops.cuda_reference.gemm` for its twin. The functions are what you call. The operators are what torch sees when it records
gradients, compiles, exports or profiles.

## Calling

```python
import torch
import tritonkernels as tk

device = "cuda" if torch.cuda.is_available() else "cpu"  # without a GPU: Triton's interpreter
x, bias = torch.randn(8, 32, device=device), torch.randn(16, device=device)
weight = torch.randn(16, 32, device=device, requires_grad=True)

y = tk.matmul(x, weight.t(), bias=bias)  # torch.nn.functional.linear(x, weight, bias)
y.square().sum().backward()
print(weight.grad.shape)

z = tk.gemm(x, weight.detach().t(), out=torch.empty(8, 16, device=device))
```

| torch | here |
| --- | --- |
| `mm`, `addmm` in float32 and float64 | `gemm(a, b)`, `gemm(a, b, c, alpha=, beta=)` |
| `matmul`, `bmm`, `baddbmm`, `mm` of other types | `matmul(a, b)`, `matmul(a, b, c=c, alpha=, beta=)` |
| `nn.functional.linear` | `matmul(x, weight.mT, bias=bias)` |
| `mv`, `addmv` | `gemv(a, x)`, `gemv(a, x, y, alpha=, beta=)` |
| `nn.functional.conv2d` | `conv2d`, with the same arguments |
| `nn.grad.conv2d_input`, `conv2d_weight` | `conv2d_input`, `conv2d_weight`, with the same arguments |
| `nn.functional.conv1d`, `conv_transpose1d`, `conv_transpose2d` | the same names, with the same arguments |
| `nn.functional.conv3d` | `conv3d`, where it is [conv2d of views](conv_calls.md#signals-volumes-and-transposed-convolutions) |

torch's own samples of these operators (`op_db`) are in the tests. A type that an operation does not have (complex numbers, wide
integers) is a typed error, as is every other mistake. Products of 8-bit integers are int32 here, where torch's wrap at 8 bits.

## What to know

**Gradients** are calls of these operations too, so there are gradients of any order. They have the memory format of their
tensor. The incoming gradient may have any strides: `.sum()` gives one with strides of 0.

**Activations.** `matmul(..., activation="gelu")` applies the activation inside of the kernel, to sums that were not rounded
yet; so does `conv2d`, after its `residual`. When a gradient is recorded, backward needs the value before the activation. So the
product is stored, rounded to its type, and torch's own activation follows. In 16-bit types the two results may differ in the
last bits. A gated linear unit (`activation="swiglu"`) is likewise torch's gate of the plain product.

**`out=`** is written in place and gets no gradient. Operands that require gradients are refused then. So are tensors inside of
`torch.func`'s transforms.

**Autocast** lowers the operands of `matmul`, `gemv` and the convolutions, as it lowers torch's. `gemm` computes in float32 or
float64 by its definition: its 16-bit operands are raised to float32. So are those of a call that names a precision of float32,
such as `precision="tf32"`. float64 and integers stay what they are.

**vmap** makes one call of a batch where the operation has such a batch: `gemm` becomes `matmul` with a batch, images join the
images of one convolution, filters become groups. Where there is no such batch (a `design=` that you name, a `c` with a batch
of biases) it is a loop of calls, and a warning says so once.

**torch.compile and torch.export** keep each call as one operator that they do not look into. So:

- there is no graph break, and a graph serves all sizes, also those that only data decides (`gemm(a[mask], b)`), and every
  `alpha` and `beta` (`s.item()`), if torch's `capture_dynamic_output_shape_ops` and `capture_scalar_outputs` are on;
- design and config are chosen when the operator runs, by the sizes that it gets then;
- inductor does not fuse what is around a call into its kernel. What can be fused is an argument: `bias`, `activation`, `alpha`,
  `beta`, `c`, `out_dtype`. Arguments say what is computed and how it is rounded. A pattern that finds them in your graph would
  change results when the graph changes.

A mistake is the same typed error, at the time of the trace. Sizes that only data decides torch checks when the program runs.

**Views.** `conv1d`, `conv3d`, `conv_transpose1d` and `conv_transpose2d` have no operator of their own: torch sees views, which
move no data, and the operator of `conv2d` or `conv2d_input`. All that the table says of these holds. A mistake in a rank or a
number ends a trace with torch's error, which quotes the line of ours. `torch.fx` sees one function.

**Memory format.** `conv2d` answers channels_last in channels_last, and so do its gradients. Other results are contiguous. Any
strides are taken as they are, without a copy.

**DTensor.** Operands of torch.distributed may be sharded, by what the result keeps (rows, columns, batch, channels, groups) or
by what is summed over, for partial results: see [tensor_parallel.py](../examples/tensor_parallel.py).

**Repeated calls** do not pass torch's dispatcher, unless torch wants to see them: in a trace, a transform, a mode, under
autocast, in a profile or as DTensors. On a GPU they are C++, also where gradients are recorded and in compiled programs
([how](running.md#the-hosts-time)). Compiled autograd does not know their nodes.

**Precision** `"torch"` follows torch's switches. They are read at the call; backward has the precision of the call. In compiled
and exported programs each operator reads them when it runs, also in backward, as torch's own do.

## What works

Each cell is a test with that operation, in both packages: the one that the row links, or, where it is not "yes", the one that
the cell links. The tests of streams, of CUDA graphs and "on a GPU" need a GPU; the others run with and without one.
"""


COSTS = """\
## What it costs

**The host's time of a call** on operands of {size} x {size}, in microseconds, until it returns: as it is, while its gradients
are recorded, and in a function that torch.compile has compiled; and of a module's forward and backward together. Kernels of
larger operands hide it, and CUDA graphs lack it. What whole models take is in [the results](results.md).

`python -m perf torch` measures it on a GPU. {origin}.

{host}
"""


def markdown():
    from tests.torch_ops.features import FEATURES  # here, as an installed wheel has no tests

    rows = [_row(feature) for feature in FEATURES]
    page = f"{INTRODUCTION.format(tests=TESTS)}\n{as_table(['', *(f'`{op}`' for op in OPS), 'test'], rows)}\n"
    files = (folder / "torch.json" for folder in measured.gpus())
    return "\n".join([page, *(_costs(records.read_rows(path)) for path in files if path.exists())])


def _costs(times):
    origin = measured.origin_in([time["environment"] for time in times])
    return COSTS.format(origin=origin, size=SIZE, host=as_table(*_side_by_side(times)))


def _side_by_side(times):
    """(headings, rows): a column of each of the names that are compared."""
    names, rows = list(dict.fromkeys(time["name"] for time in times)), {}
    for time in times:
        rows.setdefault(time["of"], {})[time["name"]] = f"{time['median_us']:.1f}"
    return ["", *names], [[of, *(cells.get(name, "") for name in names)] for of, cells in rows.items()]


def _row(feature):
    instead = {op: _link(*found) for op, found in feature.instead.items()}
    return [feature.text, *(instead.get(op, "yes") for op in OPS), _link(f"`{feature.test.split('::')[1]}`", feature.test)]


def _link(text, test):
    return f"[{text}](../{TESTS}/{test.split('::')[0]})"
