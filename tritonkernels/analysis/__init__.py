"""The theory behind the designs, as plain functions: what a kernel can reach, to compare with measurements. How long
one takes is predicted by the model of time alone (choice/model.py), which asks some of these functions.

intensity   FLOP per byte of a thread, warp or block tile, and the bandwidth that a rate needs
occupancy   how many blocks an SM holds, and what stops the next one
waves       whole and partial waves of blocks, and the waste of the last one
order       the orders in which blocks compute the tiles of C
l2          hit rate of a wave, and the bandwidth that it gives
sectors     32-byte sectors that a warp's global access touches
banks       bank conflicts of a warp's shared-memory access
roofline    the two lower bounds of a kernel's time
tile        all of these for one blocked GEMM

Units are bytes, seconds, FLOP and their quotients unless a docstring says otherwise. Source, except where noted: "how to write
a fast FP32 matrix product" (Hands-on-GEMM).
"""
