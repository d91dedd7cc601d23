// The loop of the lesson double_buffered.cuh for tiles of any shape and operands that lie either way: what `rasterized` and the
// designs after it, and matmul's cuda_cores, multiply with.
//
// The last slice, the only one that may exceed K, comes first: guarded, outside the loop, which then needs no test for edges.
#pragma once
#include "z_order.cuh"

namespace gemm {

// The slices of operands that lie by rows.
template <int BM, int BN, int BK, int TM, int TN, bool VECTOR> struct ByRows {
    static constexpr int THREADS = Shape<BM, BN, TM, TN>::THREADS;
    using A = SlicesOfA<PaddedTile<BM>, BM, BK, THREADS, VECTOR>;
    using B = SlicesOfB<BN, BK, THREADS, VECTOR>;
};

template <int BM, int BN, int BK, int TM, int TN, bool VECTOR, class Slices = ByRows<BM, BN, BK, TM, TN, VECTOR>>
struct DoubleBuffer {
    static constexpr int THREADS = Shape<BM, BN, TM, TN>::THREADS;
    using Place = ZOrder<BM, BN, TM, TN>;
    using A = typename Slices::A;
    using B = typename Slices::B;

    struct Slice {
        alignas(16) float a[BK * A::Tile::PITCH];
        alignas(16) float b[BK * B::Tile::PITCH];
    };

    struct Fragments {
        float a[2][TM], b[2][TN];  // of this k and of the next, in turn
        __device__ __forceinline__ void load(const Slice& slice, int k) {
            load_fragment<TM, Place::GAP_M>(a[k % 2], slice.a + A::Tile::at(k, Place::row()));
            load_fragment<TN, Place::GAP_N>(b[k % 2], slice.b + B::Tile::at(k, Place::col()));
        }
    };

    // sum += A B, where A has K columns and B K rows, with two slices of shared memory.
    __device__ __forceinline__ static void accumulate(float (&sum)[TM][TN], Slice* buffers, const float* a, const float* b,
                                                      int first_row, int first_col, int M, int N, int K,
                                                      const Strides& stride) {
        static_assert(BK % 2 == 0, "k and the next k use two sets of fragments, across slices too");
        A a_slices(a, first_row, M, stride.a);
        B b_slices(b, first_col, N, stride.b);
        float4 a_quads[A::QUADS], b_quads[B::QUADS];
        Fragments fragments;
        int now = 0;

        const int last = max(K - 1, 0) / BK * BK;  // where the last slice begins
        a_slices.fetch_tail(a_quads, last, K);
        b_slices.fetch_tail(b_quads, last, K);
        A::put(buffers[now].a, a_quads);
        B::put(buffers[now].b, b_quads);
        __syncthreads();
        fragments.load(buffers[now], 0);

        for (int left = last; left > 0; left -= BK) {
            a_slices.fetch(a_quads);
            b_slices.fetch(b_quads);
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK - 1) {  // the other buffer was read to its end before the barrier of the slice before
                    now ^= 1;
                    A::put(buffers[now].a, a_quads);
                    B::put(buffers[now].b, b_quads);
                    __syncthreads();
                }
                fragments.load(buffers[now], (k + 1) % BK);
                outer_product(sum, fragments.a[k % 2], fragments.b[k % 2]);
            }
        }
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k + 1 < BK) fragments.load(buffers[now], k + 1);
            outer_product(sum, fragments.a[k % 2], fragments.b[k % 2]);
        }
    }
};

}  // namespace gemm
