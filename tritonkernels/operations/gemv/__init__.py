"""gemv: what both packages ask of it."""
