"""What torch's own float32 products and convolutions round to, by its switches: what precision="torch" follows.

Of torch's switches these can be read whichever was set.
"""

import torch


def of_products():
    return "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee"


def of_convolutions():
    return "tf32" if torch.backends.cudnn.conv.fp32_precision == "tf32" else "ieee"


def now():
    return of_products(), of_convolutions()
