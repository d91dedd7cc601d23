"""What the Gluon designs are compiled for: operands, on meta tensors, whose layouts reach every path."""

import torch

DESIGNS = ("warp_tiled", "vectorized", "conflict_free", "z_order", "double_buffered", "async_copy")


def _empty(rows, cols):
    return torch.empty(rows, cols, device="meta")


def _columns(rows, cols):
    return _empty(cols, rows).t()


OPERANDS = {
    "rows": lambda: (_empty(4096, 4096), _empty(4096, 4096)),
    "columns": lambda: (_columns(4096, 4096), _columns(4096, 4096)),
    "odd": lambda: (_empty(4097, 4095), _empty(4095, 4099)),
    "odd columns": lambda: (_columns(4097, 4095), _columns(4095, 4099)),
    "no neighbours": lambda: (_empty(4096, 8192)[:, ::2], _empty(4096, 8192)[:, ::2]),
}
