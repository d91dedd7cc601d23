"""A page for each design: its Triton and its CUDA file, what they share, and the machine code that they become."""
