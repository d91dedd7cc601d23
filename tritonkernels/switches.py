"""What torch's own float32 products and convolutions round to, by its switches: what precision="torch" follows.

Of torch's switches these can be read whichever was set. torch.compile cannot trace them: compiled code keeps what they said,
but for that of products, a change of which torch compiles anew for.
"""

import torch


def of_products():
    return "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee"


def of_convolutions():
    return "tf32" if torch.backends.cudnn.conv.fp32_precision == "tf32" else "ieee"


def settled(precision, read, tensor):
    """The precision, with what torch's own operator would have now for "torch": what its switch says, by `read`; under autocast
    None, so that the operands are lowered."""
    if precision != "torch":
        return precision
    lowered = torch._C._is_any_autocast_enabled() and torch.is_autocast_enabled(tensor.device.type)
    return None if lowered else read()


for _function in (of_products, of_convolutions):
    # All that torch.compiler.assume_constant_result does, but for importing a compiler.
    _function._dynamo_marked_constant = True
