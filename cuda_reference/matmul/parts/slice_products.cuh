// The main loop of a consumer: wgmma multiplies slices of both operands that lie in shared memory.
//
// The products of a slice run while the consumer waits for the next one to land. Once those are started, too, it waits for the
// first ones' end, and gives their stage back.
//
// Tensor cores take the next wgmma only shortly before the one before it ends. So what a consumer does between the last one of a
// slice and the first of the next is time without products, unless another consumer has some: of 64 x 64, whose slices are 128
// clocks of products, a third. Therefore descriptors are in uniform registers (own_warpgroup in wgmma.cuh), threads know whom
// they tell (cluster.cuh), and the loop has four slices a round.
#pragma once
#include "../../common/index.cuh"
#include "../../common/mbarrier.cuh"
#include "../../common/wgmma.cuh"
#include "lane_sums.cuh"
#include "tma_slices.cuh"

namespace matmul {

// A step of 64 rows. Of more than 256 columns a second wgmma has the rest: half of them, across K but for a part of a box.
template <class T, bool LEFT_K_MAJOR, bool RIGHT_K_MAJOR, bool ADDS, class Sum, int TILES>
__device__ __forceinline__ void multiply_step(LaneSums<Sum> (&sum)[TILES], uint64_t left, uint64_t right) {
    constexpr int FIRST = TILES <= 32 ? TILES : RIGHT_K_MAJOR ? (TILES + 1) / 2 : ceil_div(TILES, 16) * 8;
    wgmma<T, LEFT_K_MAJOR, RIGHT_K_MAJOR, ADDS>(reinterpret_cast<LaneSums<Sum>(&)[FIRST]>(sum), left, right);
    if constexpr (TILES > FIRST) {
        auto& others = reinterpret_cast<LaneSums<Sum>(&)[TILES - FIRST]>(sum[FIRST]);
        wgmma<T, LEFT_K_MAJOR, RIGHT_K_MAJOR, ADDS>(others, left, right + (FIRST * BLOCK_BYTES / 8 >> 4));
    }
}

// Adds the sums of a slice to those of all before it.
template <int BLOCKS, int TILES>
__device__ __forceinline__ void promote(LaneSums<float> (&sum)[BLOCKS][1][TILES], LaneSums<float> (&slice)[BLOCKS][1][TILES]) {
#pragma unroll
    for (int m = 0; m < BLOCKS; ++m) {
        wgmma_results(slice[m][0]);
#pragma unroll
        for (int i = 0; i < TILES * 4; ++i) sum[m][0][i / 4].x[i % 4] += slice[m][0][i / 4].x[i % 4];
    }
}

// Multiplies slices Left and Right: BLOCKS of 64 rows by TILES of 8 columns. PROMOTES: tensor cores add up one slice at a time,
// because they keep few bits of fp8, and fewer than planes of fp32 need over a long K.
template <class Left, class Right, class Sum, int BLOCKS, int TILES, bool PROMOTES> struct SliceProducts {
    static constexpr int STEPS = SLICE / 32;
    using T = typename Left::Element;
    using Sums = LaneSums<Sum>[BLOCKS][1][TILES];

    uint64_t first_left, first_right;  // descriptors of the consumer's part of the first stage

    // Adds the products of `count` slices; returns the last one's stage. Calls all_started() when only wgmmas are to be waited for.
    template <class Ring, class GiveBack, class AllStarted>
    __device__ __forceinline__ int multiply(Sums& sum, int count, Ring& ring, uint64_t* full, const GiveBack& give_back,
                                            const AllStarted& all_started) const {
        int last = 0;  // the stage that the wgmmas in flight read
        const auto next = [&](Sums& into, int slice) { this->next<STEPS>(into, slice == 0, last, ring, full, give_back); };
        if constexpr (!PROMOTES) {
#pragma unroll 4
            for (int slice = 0; slice < count; ++slice) next(sum, slice);
            all_started();
            wgmma_wait<0>();
        } else if (count > 0) {  // two slices a round: ptxas makes wgmmas wait where a branch is between them and their wait
            Sums even, odd;
            next(even, 0);
            int slice = 1;
#pragma unroll 1
            for (; slice + 1 < count; slice += 2) {
                next(odd, slice);
                promote(sum, even);
                next(even, slice + 1);
                promote(sum, odd);
            }
            if (slice < count) {
                next(odd, slice);
                promote(sum, even);
                wgmma_wait<0>();
                promote(sum, odd);
            } else {
                wgmma_wait<0>();
                promote(sum, even);
            }
        }
        if (count > 0) give_back(last);
        return last;
    }

    // The same where the last of every `period` slices, the first of which is the first-th of its period, has zeros after its first
    // half: these are not multiplied. A half slice has code of its own: a branch within a slice would make its wgmmas wait.
    template <class Ring, class GiveBack>
    __device__ __forceinline__ void multiply_with_halves(Sums& sum, int count, int first, int period, Ring& ring, uint64_t* full,
                                                         const GiveBack& give_back) const {
        static_assert(!PROMOTES, "one sum");
        int last = -1;
#pragma unroll 1
        for (int left = count; left > 0; first = 0) {
            const int whole = min(left, period - 1 - first);
#pragma unroll 1
            for (int slice = 0; slice < whole; ++slice) next<STEPS>(sum, last < 0, last, ring, full, give_back);
            left -= whole;
            if (left > 0) next<STEPS / 2>(sum, last < 0, last, ring, full, give_back);
            --left;
        }
        wgmma_wait<0>();
        if (last >= 0) give_back(last);
    }

  private:
    // Starts COUNT steps of a slice, and waits for the slice before, whose stage is `last`.
    template <int COUNT, class Ring, class GiveBack>
    __device__ __forceinline__ void next(Sums& into, bool is_first, int& last, Ring& ring, uint64_t* full,
                                         const GiveBack& give_back) const {
        mbarrier_wait(full + ring.stage, ring.parity);
        start<COUNT>(into, ring.stage);
        wgmma_wait<1>();
        if (!is_first) give_back(last);
        last = ring.stage;
        ring.advance();
    }

    template <int COUNT> __device__ __forceinline__ void start(Sums& into, int stage) const {
        const uint64_t left = first_left + stage * (Left::BYTES >> 4), right = first_right + stage * (Right::BYTES >> 4);
        wgmma_fence();
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m)
            multiply_step<T, Left::ALONG_K, Right::ALONG_K, !PROMOTES>(into[m][0], left + (m * BLOCK_BYTES >> 4), right);
#pragma unroll
        for (int k = 1; k < COUNT; ++k)
#pragma unroll
            for (int m = 0; m < BLOCKS; ++m)
                multiply_step<T, Left::ALONG_K, Right::ALONG_K, true>(
                    into[m][0], left + ((m * BLOCK_BYTES + k * Left::STEP) >> 4), right + (k * Right::STEP >> 4));
        wgmma_commit();
    }
};

}  // namespace matmul
