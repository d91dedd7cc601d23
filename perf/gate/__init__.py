"""The proof of the library on a machine with GPUs, in steps."""
