// The result of a plain product, alpha * sums + beta * C, written from the registers that wgmma leaves its sums in.
#pragma once
#include "../../common/structs.cuh"
#include "../../common/wgmma.cuh"

namespace matmul {

// A lane's four sums of 16 x 8: rows lane / 4 and 8 on, columns lane % 4 * 2 and the next.
struct Sums { float x[4]; };

// C is null where beta is 0.
template <class Out> struct PlainResult {
    const Out* c;
    Out* out;
    int M, N;
    float alpha, beta;
    MatrixStrides of_c, of_out;

    // A warpgroup's 64 rows and 8 TILES columns from (row, col) on, in pairs where the elements of a row are neighbours.
    template <int TILES> __device__ __forceinline__ void store(Sums (&sum)[TILES], int row, int col) const {
        wgmma_results(sum);
        row += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
        col += threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < 4 * TILES; ++i) {  // apart from the stores, so that all loads of C are under way together
            float& number = sum[i / 4].x[i % 4];
            const int r = row + i % 4 / 2 * 8, n = col + i / 4 * 8 + i % 2;
            number *= alpha;
            if (c != nullptr && r < M && n < N) number += beta * float(c[r * of_c.row + n * of_c.col]);
        }
        struct alignas(2 * sizeof(Out)) Pair { Out x, y; };
        const bool pairs = of_out.col == 1 && of_out.row % 2 == 0 && reinterpret_cast<uintptr_t>(out) % sizeof(Pair) == 0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (row + half * 8 >= M) break;
            Out* const line = out + (row + half * 8) * of_out.row;
#pragma unroll
            for (int i = 0; i < TILES; ++i) {
                const Pair pair{Out(sum[i].x[half * 2]), Out(sum[i].x[half * 2 + 1])};
                const int n = col + i * 8;
                if (pairs && n + 1 < N) {
                    *reinterpret_cast<Pair*>(line + n) = pair;
                } else {
                    if (n < N) line[n * of_out.col] = pair.x;
                    if (n + 1 < N) line[(n + 1) * of_out.col] = pair.y;
                }
            }
        }
    }
};

}  // namespace matmul
