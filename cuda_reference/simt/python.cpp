// The functions that kernels become in Python, compiled once for all modules.
#include "../common/python.cuh"
