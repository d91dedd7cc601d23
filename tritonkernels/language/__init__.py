"""@triton.jit building blocks that several designs share. Imported by design files only, after the backend is chosen."""
