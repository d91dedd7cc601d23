// Strides of operands, in elements; 0 repeats one element. The names are those of the Triton side's structs
// (tritonkernels/language/structs.py). Pointers are separate parameters: a struct's member cannot be __restrict__, so its loads
// would lose the read-only path.
#pragma once
#include <cstdint>

struct VectorStrides { int64_t step; };
struct VectorsStrides { int64_t batch, step; };
struct MatrixStrides { int64_t row, col; };
struct MatricesStrides { int64_t batch, row, col; };
struct ImagesStrides { int64_t n, c, h, w; };
struct FiltersStrides { int64_t k, c, r, s; };
