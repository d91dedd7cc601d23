// Stores neighbouring elements of a row at once.
#pragma once
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

namespace matmul {

template <int BYTES>
using RunWord = std::conditional_t<BYTES == 16, uint4, std::conditional_t<BYTES == 8, uint2, unsigned>>;

// Stores the COUNT elements of a run to a row of out, except those outside of its M x N: by one store of 32 to 128 bits if
// they are contiguous and aligned.
template <class Out, int COUNT>
__device__ __forceinline__ void store_run(const Out (&run)[COUNT], Out* out, int row, int col, int M, int N, int64_t row_stride,
                                          int64_t col_stride) {
    using Word = RunWord<sizeof run>;
    static_assert(sizeof run == sizeof(Word), "a run is a word");
    if (row >= M) return;
    Out* const to = out + row * row_stride + col * col_stride;
    if (col_stride == 1 && col + COUNT <= N && reinterpret_cast<uintptr_t>(to) % sizeof(Word) == 0) {
        *reinterpret_cast<Word*>(to) = *reinterpret_cast<const Word*>(run);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (col + i < N) to[i * col_stride] = run[i];
    }
}

}  // namespace matmul
