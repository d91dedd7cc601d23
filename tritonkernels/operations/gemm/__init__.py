"""gemm: what both packages ask of it."""
