"""matmul: what both packages ask of it."""
