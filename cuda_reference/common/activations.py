"""The activations, as kernels number them (matmul/parts/activation.cuh)."""

ACTIVATIONS = (None, "relu", "gelu", "silu")
