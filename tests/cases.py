"""The calls that every design must answer. Sizes sit on and around the edges of every tile."""

import torch

GEMM_SIZES = [
    (1, 1, 1),
    (5, 3, 7),
    (31, 33, 32),
    (64, 65, 63),
    (127, 129, 9),
    (128, 128, 8),
    (129, 127, 17),
    (1, 300, 2),
    (257, 2, 65),
    (9, 4, 72),
]
EMPTY_GEMMS = [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)]
GEMV_SIZES = [(1, 1), (3, 2), (9, 31), (8, 32), (7, 33), (5, 127), (4, 128), (6, 129), (3, 1025), (300, 16), (1030, 3)]
EMPTY_GEMVS = [(0, 5), (5, 0), (0, 0)]
MATMUL_SIZES = [
    (1, 1, 1),
    (5, 3, 7),
    (16, 16, 16),
    (15, 17, 33),
    (32, 8, 16),
    (33, 9, 15),
    (65, 64, 63),
    (129, 127, 65),
    (1, 70, 130),
    (80, 144, 96),
]

# input shape, weight shape, keyword arguments
CONVOLUTIONS = {
    "one pixel": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "one output": ((2, 3, 5, 4), (4, 3, 5, 4), {}),
    "tile exact": ((1, 2, 6, 10), (8, 2, 3, 3), {}),
    "tile + 1": ((1, 3, 7, 11), (9, 3, 3, 3), {}),
    "tile - 1": ((1, 3, 5, 9), (7, 3, 3, 3), {}),
    "even filter, asymmetric": ((2, 3, 9, 20), (5, 3, 2, 4), {}),
    "padded": ((1, 2, 6, 7), (3, 2, 3, 3), {"padding": (1, 2)}),
    "padding beyond the filter": ((1, 1, 3, 3), (2, 1, 2, 2), {"padding": 4}),
    "same, even filter": ((1, 2, 7, 8), (3, 2, 4, 2), {"padding": "same"}),
    "same, dilated": ((1, 2, 7, 8), (3, 2, 2, 3), {"padding": "same", "dilation": (3, 2)}),
    "valid": ((1, 2, 7, 8), (3, 2, 2, 3), {"padding": "valid"}),
    "stride": ((1, 2, 12, 15), (3, 2, 3, 2), {"stride": (2, 3)}),
    "stride beyond the filter": ((1, 2, 12, 15), (3, 2, 2, 2), {"stride": 5}),
    "dilation beyond the filter": ((1, 2, 12, 15), (3, 2, 2, 2), {"dilation": (5, 7)}),
    "halo beyond shared memory": ((1, 2, 150, 260), (3, 2, 2, 2), {"stride": 40, "dilation": (30, 50)}),
    "groups": ((2, 6, 8, 9), (9, 2, 3, 3), {"groups": 3, "padding": 1}),
    "depthwise": ((1, 5, 8, 9), (10, 1, 3, 3), {"groups": 5, "stride": 2}),
    "one filter a channel": ((2, 8, 9, 10), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
    "one filter an odd channel": ((1, 5, 10, 9), (5, 1, 3, 2), {"groups": 5, "stride": (2, 1)}),
    "many output channels": ((1, 2, 4, 5), (37, 2, 2, 2), {}),
    "large filter": ((1, 1, 20, 23), (2, 1, 17, 19), {}),
    "one tap": ((2, 17, 6, 7), (35, 17, 1, 1), {}),
    "one tap, steps": ((2, 5, 6, 7), (9, 5, 1, 1), {"stride": (2, 3)}),
    "unbatched": ((3, 8, 9), (4, 3, 3, 3), {"padding": 1}),
    "no images": ((0, 3, 8, 9), (4, 3, 3, 3), {}),
    "no output channels": ((2, 3, 8, 9), (0, 3, 3, 3), {}),
}

MATMUL_SHAPES = {
    "vectors": ((7,), (7,)),
    "matrix times vector": ((5, 7), (7,)),
    "vector times matrix": ((7,), (7, 5)),
    "batch": ((3, 5, 7), (3, 7, 4)),
    "shared b": ((2, 3, 5, 7), (7, 4)),
    "shared a": ((5, 7), (2, 3, 7, 4)),
    "crossed batches": ((2, 1, 5, 7), (1, 3, 7, 4)),
    "batch of vectors": ((3, 5, 7), (7,)),
    "vector times batch": ((7,), (2, 3, 7, 5)),
    "no rows": ((0, 7), (7, 4)),
    "no columns": ((5, 7), (7, 0)),
    "no products": ((5, 0), (0, 4)),
    "no batch": ((0, 5, 7), (0, 7, 4)),
    "empty vectors": ((0,), (0,)),
}
FEWER_MATMUL_SIZES = [(15, 17, 33), (129, 127, 65), (1, 70, 130)]

PRECISIONS = [
    (torch.float16, {}),
    (torch.float16, {"out_dtype": torch.float32}),
    (torch.bfloat16, {}),
    (torch.bfloat16, {"out_dtype": torch.float32}),
    (torch.float32, {}),
    (torch.float32, {"precision": "tf32"}),
    (torch.int8, {}),
]
MORE_PRECISIONS = [  # at fewer sizes: an interpreted call takes 0.1 s
    (torch.float16, {"accumulate": "fp16"}),
    (torch.float64, {}),
    (torch.float8_e4m3fn, {}),
    (torch.float8_e5m2, {"out_dtype": torch.bfloat16}),
    (torch.float8_e4m3fn, {"accumulate": "fast"}),
    (torch.uint8, {}),
    (torch.uint8, {"precision": "int4"}),
    (torch.uint8, {"precision": "uint4"}),
    (torch.uint8, {"precision": "b1_xor"}),
    (torch.uint8, {"precision": "b1_and"}),
    *((torch.float32, {"precision": mode}) for mode in ("fp16x3", "tf32x3", "bf16x6", "bf16x9")),
]

# matmul's epilogues: (options, does it read C, does it read a bias)
EPILOGUES = {
    "alpha": ({"alpha": -1.5}, False, False),
    "beta": ({"beta": 2.0}, True, False),
    "bias": ({}, False, True),
    "relu": ({"activation": "relu"}, False, False),
    "gelu": ({"activation": "gelu"}, False, True),
    "silu": ({"activation": "silu", "alpha": 0.5}, False, False),
    "all": ({"alpha": 0.5, "beta": -3.0, "activation": "silu"}, True, True),
}
