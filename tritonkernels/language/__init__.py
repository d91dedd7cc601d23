"""@triton.jit building blocks that several designs share. Only design files import it, after the backend is chosen."""
