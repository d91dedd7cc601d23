"""What torch's own float32 products and convolutions round to, by its switches: what precision="torch" follows.

Of torch's switches these can be read whichever was set. torch.compile cannot trace them: compiled code keeps what they said,
but for that of products, a change of which torch compiles anew for.
"""

import torch


def of_products():
    return "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee"


def of_convolutions():
    return "tf32" if torch.backends.cudnn.conv.fp32_precision == "tf32" else "ieee"


for _function in (of_products, of_convolutions):
    _function._dynamo_marked_constant = (
        True  # all that torch.compiler.assume_constant_result does, but for importing a compiler
    )
