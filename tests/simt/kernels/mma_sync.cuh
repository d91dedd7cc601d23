// Each lane's registers after ldmatrix, and one mma.sync on words as they come.
#pragma once
#include <cstdint>

#include "../../../cuda_reference/common/ldmatrix.cuh"
#include "../../../cuda_reference/common/mma_sync.cuh"
#include "../../../cuda_reference/common/shared.cuh"
#include "../../../cuda_reference/common/stmatrix.cuh"

namespace instruction {

// Row r of matrix i is at rows + 8 (place[8 i + r]); lanes past the last matrix point nowhere.
template <int COUNT, bool TRANSPOSED> __global__ void load(const uint16_t* rows, const int* place, unsigned* words) {
    __shared__ __align__(16) uint16_t shared[64 * 8];
    for (int i = threadIdx.x; i < 64 * 8; i += 32) shared[i] = rows[i];
    __syncwarp();
    unsigned loaded[COUNT];
    ldmatrix<TRANSPOSED>(loaded, threadIdx.x < 8 * COUNT ? shared + place[threadIdx.x] : nullptr);
    for (int i = 0; i < COUNT; ++i) words[threadIdx.x * COUNT + i] = loaded[i];
}

// The bytes of shared memory after it: row r of matrix i goes to byte place[8 i + r]. Read without a barrier, by lane 0 only.
__global__ void store(const unsigned* words, const int* place, uint16_t* memory, int count, bool barrier) {
    uint16_t* const shared = dynamic_shared<uint16_t>();
    unsigned stored[4];
    for (int i = 0; i < 4; ++i) stored[i] = words[threadIdx.x * 4 + i];
    stmatrix(reinterpret_cast<unsigned char*>(shared) + place[threadIdx.x], stored);
    if (barrier) __syncwarp();
    if (threadIdx.x == 0)
        for (int i = 0; i < count; ++i) memory[i] = shared[i];
}

enum Instruction { LDMATRIX, STMATRIX, MMA_SYNC };

// One lane of 32 stays away.
__global__ void lonely(int instruction) {
    unsigned words[4] = {}, loaded[1];
    float sum[4] = {};
    if (threadIdx.x == 31) return;
    if (instruction == LDMATRIX) ldmatrix<false>(loaded, dynamic_shared<unsigned char>());
    if (instruction == STMATRIX) stmatrix(dynamic_shared<unsigned char>(), words);
    if (instruction == MMA_SYNC) mma_sync<__half>(sum, words, 0, 0);
}

template <class T, class Sum, int NUMBERS> __global__ void multiply(const unsigned* a, const unsigned* b, Sum* sums) {
    Sum sum[NUMBERS];
    unsigned words[4];
    for (int i = 0; i < 4; ++i) words[i] = a[threadIdx.x * 4 + i];
    for (int i = 0; i < NUMBERS; ++i) sum[i] = sums[threadIdx.x * NUMBERS + i];
    mma_sync<T>(sum, words, b[threadIdx.x * 2], b[threadIdx.x * 2 + 1]);
    for (int i = 0; i < NUMBERS; ++i) sums[threadIdx.x * NUMBERS + i] = sum[i];
}

__global__ void round(unsigned* words) { words[threadIdx.x] = round_to_tf32(words[threadIdx.x]); }

}  // namespace instruction
