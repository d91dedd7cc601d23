// Copies of both operands' slices through STAGES of shared memory, and the loop over them.
//
// Slices are STAGES - 1 ahead of the multiplication, fragments one step ahead, and there is one barrier a slice. The last
// slice, the only one that may reach beyond K, is copied first: guarded, outside the loop, which then needs no test for K.
#pragma once
#include "../../common/shared.cuh"
#include "../../common/tma.cuh"
#include "../../common/wgmma.cuh"
#include "shifted_copies.cuh"

namespace matmul {

// A matrix of the batch (its first plane, where it has several), and the row of A or column of B at which a block begins.
template <class T> struct Corner {
    const T* matrix;
    int first, span;
    int64_t span_stride, k_stride, plane_stride;
};

// A stage holds a tile of each of the operand's PLANES matrices. Every step except the last of STEPS copies. A's slices may be
// copied by a struct of its own, as conv2d's pixels are; those that pass through registers are stored after a step's products.
template <class ATile, class BTile, int PLANES, int STAGES, int STEPS, int THREADS,
          class ACopies = Copies<ATile, THREADS, STEPS - 1>>
struct Slices {
    using T = typename ATile::Element;
    using BCopies = Copies<BTile, THREADS, STEPS - 1>;
    static_assert(STAGES >= 3, "one is read, one has landed, one is under way");
    static_assert(STEPS % 2 == 0, "steps use two sets of fragments in turn, across slices too");
    static constexpr int A_SIZE = PLANES * ATile::SIZE, B_SIZE = PLANES * BTile::SIZE;

    ACopies a_copies;
    BCopies b_copies;
    int64_t a_plane, b_plane;
    T *a_tiles, *b_tiles;

    __device__ __forceinline__ Slices(const Corner<T>& a, const Corner<T>& b)
        : a_copies(a.matrix, a.first, a.span, a.span_stride, a.k_stride),
          b_copies(b.matrix, b.first, b.span, b.span_stride, b.k_stride),
          a_plane(a.plane_stride),
          b_plane(b.plane_stride),
          a_tiles(dynamic_shared<T>()),
          b_tiles(a_tiles + STAGES * A_SIZE) {}

    __device__ __forceinline__ Slices(const ACopies& a, const Corner<T>& b)
        : a_copies(a),
          b_copies(b.matrix, b.first, b.span, b.span_stride, b.k_stride),
          a_plane(0),
          b_plane(b.plane_stride),
          a_tiles(dynamic_shared<T>()),
          b_tiles(a_tiles + STAGES * A_SIZE) {}

    __device__ __forceinline__ T* a_tile(int stage, int plane) const { return a_tiles + stage * A_SIZE + plane * ATile::SIZE; }
    __device__ __forceinline__ T* b_tile(int stage, int plane) const { return b_tiles + stage * B_SIZE + plane * BTile::SIZE; }

    __device__ __forceinline__ void copy_tail(int first_k, int K) {
#pragma unroll
        for (int plane = 0; plane < PLANES; ++plane) {
            a_copies.copy_tail(a_tile(0, plane), first_k, K, plane * a_plane);
            b_copies.copy_tail(b_tile(0, plane), first_k, K, plane * b_plane);
        }
    }

    __device__ __forceinline__ void copy(int stage, int part) {
#pragma unroll
        for (int plane = 0; plane < PLANES; ++plane) {
            a_copies.copy(a_tile(stage, plane), part, plane * a_plane);
            b_copies.copy(b_tile(stage, plane), part, plane * b_plane);
        }
    }

    // What `copy` left in registers.
    __device__ __forceinline__ void put(int stage, int part) {
        if constexpr (!ACopies::PAST_REGISTERS) a_copies.put(a_tile(stage, 0), part);
        if constexpr (!BCopies::PAST_REGISTERS) b_copies.put(b_tile(stage, 0), part);
    }

    __device__ __forceinline__ void advance() {
        a_copies.advance();
        b_copies.advance();
    }

    // The slices before the loop: their number.
    __device__ __forceinline__ int start(int K) {
        const int last = max(K - 1, 0) / ATile::DEPTH, slices = last + 1;
        copy_tail(last * ATile::DEPTH, K);
        cp_async_commit();
#pragma unroll
        for (int stage = 1; stage < STAGES - 1; ++stage) {
            if (stage < slices) {
#pragma unroll
                for (int part = 0; part < STEPS - 1; ++part) {
                    copy(stage, part);
                    put(stage, part);
                }
                advance();
            }
            cp_async_commit();  // of nothing where there is no slice, so that waits can count groups
        }
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        return slices;
    }

    // load(which, stage, step) fills one of two sets of fragments from a stage, multiply(which, step) uses it.
    template <class Load, class Multiply>
    __device__ __forceinline__ void walk(int K, const Load& load, const Multiply& multiply) {
        const int slices = start(K);
        int now = 0, free = STAGES - 1;  // the stage that is read, and the one that is free
        load(0, 0, 0);
        for (int slice = 0; slice < slices; ++slice) {
            const bool more = slice + STAGES - 1 < slices;
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                if (more && step < STEPS - 1) copy(free, step);
                if (step == STEPS - 1) {
                    advance();
                    cp_async_commit();
                    cp_async_wait<STAGES - 2>();  // for the next slice; after the last, what is loaded below is never used
                    __syncthreads();
                    free = now;
                    now = now + 1 == STAGES ? 0 : now + 1;
                }
                load((step + 1) % 2, now, (step + 1) % STEPS);
                multiply(step % 2, step);
                if (more && step < STEPS - 1) put(free, step);
            }
        }
    }

    // multiply(stage, step) reads the stage itself, where registers do not hold two sets of fragments.
    template <class Multiply> __device__ __forceinline__ void walk_in_place(int K, const Multiply& multiply) {
        const int slices = start(K);
        int now = 0, free = STAGES - 1;
        for (int slice = 0; slice < slices; ++slice) {
            const bool more = slice + STAGES - 1 < slices;
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                if (more && step < STEPS - 1) copy(free, step);
                multiply(now, step);
                if (more && step < STEPS - 1) put(free, step);
            }
            advance();
            cp_async_commit();
            cp_async_wait<STAGES - 2>();
            __syncthreads();
            free = now;
            now = now + 1 == STAGES ? 0 : now + 1;
        }
    }

    // issue(stage) starts products that read the stage on their own (wgmma); the next slices' copies are made meanwhile. Slices
    // are STAGES - 2 ahead: when the block meets, those of the slice before last are done, and its stage is free.
    template <class Issue> __device__ __forceinline__ void walk_behind(int K, const Issue& issue) {
        const int slices = start(K);
        int now = 0, free = STAGES - 2;
#pragma unroll 1
        for (int slice = 0; slice < slices; ++slice) {
            if (slice > 0) cp_async_wait<STAGES - 3>();
            tma_store_fence();  // all writes to the slice are visible to wgmma
            __syncthreads();
            issue(now);
            if (slice > 0 && slice + STAGES - 2 < slices) {
#pragma unroll
                for (int part = 0; part < STEPS - 1; ++part) copy(free, part);
#pragma unroll
                for (int part = 0; part < STEPS - 1; ++part) put(free, part);
                advance();
            }
            if (slice > 0) cp_async_commit();
            wgmma_wait<1>();
            now = now + 1 == STAGES ? 0 : now + 1;
            free = free + 1 == STAGES ? 0 : free + 1;
        }
        wgmma_wait<0>();
    }
};

}  // namespace matmul
