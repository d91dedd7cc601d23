// mbarriers, tensor copies and wgmma, each with the mistakes that the emulation must notice.
#pragma once
#include "../../../cuda_reference/common/cp_async.cuh"
#include "../../../cuda_reference/common/shared.cuh"
#include "../../../cuda_reference/common/tma.cuh"
#include "../../../cuda_reference/common/wgmma.cuh"

namespace hopper {

enum Mistake { NONE, NO_ARRIVAL, WRONG_PARITY, NO_INIT, TWO_INITS };

// The last thread hands 0, 1, ... COUNT - 1 to the first through a ring of two places.
__global__ void hand_over(int* out, int count, int mistake) {
    volatile int* const places = dynamic_shared<int>();
    uint64_t* const full = dynamic_shared<uint64_t>() + 1;
    uint64_t* const empty = full + 2;
    if (threadIdx.x == 0 && mistake != NO_INIT)
        for (int i = 0; i < (mistake == TWO_INITS ? 5 : 4); ++i) mbarrier_init(full + i % 4, 1);
    mbarrier_init_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < count; ++i) {
            mbarrier_wait(full + i % 2, (i / 2 + (mistake == WRONG_PARITY)) % 2);
            out[i] = places[i % 2];
            if (mistake != NO_ARRIVAL) mbarrier_arrive(empty + i % 2);
        }
    } else if (threadIdx.x == blockDim.x - 1) {
        for (int i = 0; i < count; ++i) {
            mbarrier_wait(empty + i % 2, (i / 2 + 1) % 2);
            places[i % 2] = i;
            mbarrier_arrive(full + i % 2);
        }
    }
}

// A box of a tensor, as it lies in shared memory; `more` bytes are waited for than come, of which `arrivals` of 1 tell.
template <bool FENCE>
__global__ void copy_box(const __grid_constant__ CUtensorMap map, unsigned char* out, int bytes, int more, int arrivals,
                         int column, int row, int batch, bool waits) {
    unsigned char* const box = dynamic_shared<unsigned char>();
    uint64_t* const landed = reinterpret_cast<uint64_t*>(box + (bytes + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        mbarrier_init(landed, 1);
        if (FENCE) mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < arrivals; ++i) mbarrier_arrive_expect(landed, bytes + more);
        tma_load(box, map, landed, column, row, batch);
    }
    if (waits) mbarrier_wait(landed, 0);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = box[i];
}

// A box of pixels, moved by a tap.
__global__ void copy_pixels(const __grid_constant__ CUtensorMap map, unsigned char* out, int bytes, int channel, int image, int row,
                            int column, int down, int right) {
    unsigned char* const box = dynamic_shared<unsigned char>();
    uint64_t* const landed = reinterpret_cast<uint64_t*>(box + (bytes + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
        mbarrier_init(landed, 1);
        mbarrier_init_fence();
        mbarrier_arrive_expect(landed, bytes);
        tma_load_pixels(box, map, landed, channel, {image, row, column}, {(unsigned short)(down), (unsigned short)(right)});
    }
    __syncthreads();
    mbarrier_wait(landed, 0);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = box[i];
}

// A box that leaves: its bytes are counted from 0, as they lie in shared memory. Twice, where a fence is wanted twice.
__global__ void store_box(const __grid_constant__ CUtensorMap map, int bytes, int column, int row, int times, int fences) {
    unsigned char* const box = dynamic_shared<unsigned char>();
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) box[i] = (unsigned char)i;
    for (int i = 0; i < times; ++i) {
        if (i < fences) tma_store_fence();
        __syncthreads();
        if (threadIdx.x == 0) {
            tma_store(map, box, column, row, 0);
            tma_store_commit();
        }
    }
    if (threadIdx.x == 0) tma_store_wait<0>();
}

enum InCluster { SOUND, NO_BARRIER, NO_FENCE_THERE, GONE, NOBODY_WAITS, FAR, NO_TAIL };

// Two blocks each request half of a box of 16 rows of 128 bytes for both, and tell both when they have read it.
__global__ void __launch_bounds__(64) __cluster_dims__(2, 1, 1)
share_box(const __grid_constant__ CUtensorMap map, unsigned char* out, int mistake) {
    constexpr int BYTES = 16 * 128;
    unsigned char* const box = dynamic_shared<unsigned char>();
    uint64_t* const landed = reinterpret_cast<uint64_t*>(box + BYTES);
    uint64_t* const read = landed + 1;
    const int block = blockIdx.x % 2;
    if (threadIdx.x == 0) {
        mbarrier_init(landed, 1);
        mbarrier_init(read, 2);
        if (mistake != NO_FENCE_THERE || block == 0) mbarrier_init_fence();
    }
    __syncthreads();
    if (mistake != NO_BARRIER) cluster_barrier();
    if (mistake == GONE && block == 1) return;
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(landed, BYTES);
        tma_load_multicast(box + block * BYTES / 2, map, landed, 0, block * 8, blockIdx.x / 2, 3);
    }
    if (mistake != NOBODY_WAITS || block == 0) mbarrier_wait(landed, 0);
    for (int i = threadIdx.x; i < BYTES; i += 64) out[blockIdx.x * BYTES + i] = box[i];
    __syncthreads();
    if (threadIdx.x < 2) mbarrier_arrive_at(read, mistake == FAR ? 2 : threadIdx.x);
    if (mistake != NO_TAIL) mbarrier_wait(read, 0);
}

template <class Number, int COUNT> struct Tile {
    Number x[COUNT];
};

enum Misuse { RIGHT, NO_FENCE, NO_WAIT, ALONE, OTHER_OPERAND, NO_PROXY_FENCE };

// One wgmma on slices as they come: A's 64 x 128 bytes, then B's; every thread's registers in and out.
template <class T, class Number, int COUNT, int TILES, bool A_K_MAJOR, bool B_K_MAJOR, bool ADDS = true>
__global__ void multiply(const unsigned char* slices, Tile<Number, COUNT>* sums, int bytes, int a_offset, int b_offset,
                         int next, int misuse) {
    unsigned char* const shared = dynamic_shared<unsigned char>();
    for (int i = 16 * threadIdx.x; i < bytes; i += 16 * blockDim.x) cp_async<16>(shared + i, slices + i);
    cp_async_commit();
    cp_async_wait<0>();
    if (misuse != NO_PROXY_FENCE || threadIdx.x != 7) tma_store_fence();
    __syncthreads();
    Tile<Number, COUNT> sum[TILES];
    for (int i = 0; i < TILES; ++i) sum[i] = sums[threadIdx.x * TILES + i];
    if (misuse == ALONE && threadIdx.x >= 96) return;
    const int skew = misuse == OTHER_OPERAND && threadIdx.x == 5 ? 32 : 0;
    if (misuse != NO_FENCE) wgmma_fence();
    wgmma<T, A_K_MAJOR, B_K_MAJOR, ADDS>(sum, wgmma_descriptor(shared_address(shared) + a_offset + skew, next),
                                   wgmma_descriptor(shared_address(shared) + b_offset, next));
    wgmma_commit();
    if (misuse != NO_WAIT) wgmma_wait<0>();
    wgmma_results(sum);
    for (int i = 0; i < TILES; ++i) sums[threadIdx.x * TILES + i] = sum[i];
}

// One of tf32 on 64 rows of B and every thread's fragment of A, which may be overwritten before it has been read.
__global__ void multiply_fragments(const unsigned char* b, const uint4* fragments, Tile<float, 4>* sums, bool overwrites) {
    unsigned char* const shared = dynamic_shared<unsigned char>();
    for (int i = 16 * threadIdx.x; i < 64 * 128; i += 16 * blockDim.x)
        *reinterpret_cast<uint4*>(shared + i) = *reinterpret_cast<const uint4*>(b + i);
    tma_store_fence();
    __syncthreads();
    const uint4 given = fragments[threadIdx.x];
    unsigned fragment[4] = {given.x, given.y, given.z, given.w};
    Tile<float, 4> sum[8] = {};
    wgmma_fence();
    wgmma<float>(sum, fragment, wgmma_descriptor(shared_address(shared), 64 * 128));
    wgmma_commit();
    if (overwrites) fragment[3] = 0;
    wgmma_wait<0>();
    wgmma_results(sum);
    for (int i = 0; i < 8; ++i) sums[threadIdx.x * 8 + i] = sum[i];
}

}  // namespace hopper
