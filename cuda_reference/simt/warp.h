// Barriers, votes and shuffles: each is a rendezvous whose last thread does the exchange for all.
#pragma once
#include <type_traits>

#include "block.h"
#include "trace.h"

namespace simt {

// The compiler must not keep shared variables in registers across a wait, nor move accesses over it.
inline void fence() { asm volatile("" ::: "memory"); }

template <class Operand, class Do>  // Do: a captureless lambda (Thread* warp, int lanes, unsigned mask)
void rendezvous_of_warp(const char* name, unsigned mask, Operand& operand, Do exchange) {
    fence();
    Block::current->wait_warp(name, +exchange, mask, &operand);
    fence();
}

template <class Operand, class Do> void rendezvous_of_block(const char* name, Operand& operand, Do exchange) {
    fence();
    Block::current->wait_block(name, +exchange, &operand);
    fence();
    trace_barrier();
}

inline int lane() { return Block::current->rank() % warpSize; }

template <class T> struct Shuffle {
    T value, result;
    int source;  // a lane; if outside of the mask or the warp, the result is undefined
};

template <class T> T shuffle(const char* name, unsigned mask, T value, int source) {
    static_assert(std::is_trivially_copyable<T>::value, "a shuffle moves registers");
    Shuffle<T> mine{value, value, source};
    rendezvous_of_warp(name, mask, mine, [](Thread* warp, int lanes, unsigned mask) {
        for (int i = 0; i < lanes; ++i) {
            if (!(mask >> i & 1)) continue;
            auto& to = *static_cast<Shuffle<T>*>(warp[i].operand);
            if (to.source < lanes && (mask >> to.source & 1))
                to.result = static_cast<Shuffle<T>*>(warp[to.source].operand)->value;
            else
                std::memset(static_cast<void*>(&to.result), 0xFF, sizeof(T));  // that lane has no value
        }
    });
    return mine.result;
}

// Shuffles stay inside segments of `width` lanes.
inline int segment(int width) {
    if (width < 1 || width > warpSize || (width & (width - 1)) != 0)
        fail("a shuffle's width must be a power of two up to 32, not " + std::to_string(width));
    return lane() & ~(width - 1);
}

struct Votes {
    bool mine;
    unsigned all;
};

inline unsigned ballot(const char* name, unsigned mask, bool vote) {
    Votes votes{vote, 0};
    rendezvous_of_warp(name, mask, votes, [](Thread* warp, int lanes, unsigned mask) {
        unsigned all = 0;
        for (int i = 0; i < lanes; ++i)
            if (mask >> i & 1) all |= unsigned(static_cast<Votes*>(warp[i].operand)->mine) << i;
        for (int i = 0; i < lanes; ++i)
            if (mask >> i & 1) static_cast<Votes*>(warp[i].operand)->all = all;
    });
    return votes.all;
}

}  // namespace simt

inline void __syncthreads() {
    int nothing = 0;
    simt::rendezvous_of_block("__syncthreads", nothing, [](simt::Thread*, int, unsigned) {});
}

inline int __syncthreads_count(int predicate) {
    int operand = predicate != 0;
    simt::rendezvous_of_block("__syncthreads_count", operand, [](simt::Thread* threads, int count, unsigned) {
        int sum = 0;
        for (int i = 0; i < count; ++i) sum += *static_cast<int*>(threads[i].operand);
        for (int i = 0; i < count; ++i) *static_cast<int*>(threads[i].operand) = sum;
    });
    return operand;
}

inline int __syncthreads_or(int predicate) {
    int operand = predicate != 0;
    simt::rendezvous_of_block("__syncthreads_or", operand, [](simt::Thread* threads, int count, unsigned) {
        int any = 0;
        for (int i = 0; i < count; ++i) any |= *static_cast<int*>(threads[i].operand);
        for (int i = 0; i < count; ++i) *static_cast<int*>(threads[i].operand) = any;
    });
    return operand;
}

inline int __syncthreads_and(int predicate) {
    int operand = predicate != 0;
    simt::rendezvous_of_block("__syncthreads_and", operand, [](simt::Thread* threads, int count, unsigned) {
        int all = 1;
        for (int i = 0; i < count; ++i) all &= *static_cast<int*>(threads[i].operand);
        for (int i = 0; i < count; ++i) *static_cast<int*>(threads[i].operand) = all;
    });
    return operand;
}

inline void __syncwarp(unsigned mask = 0xffffffff) {
    int nothing = 0;
    simt::rendezvous_of_warp("__syncwarp", mask, nothing, [](simt::Thread*, int, unsigned) {});
    simt::trace_warp_barrier();
}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
    return simt::shuffle("__shfl_sync", mask, value, simt::segment(width) + (source & (width - 1)));
}

template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
    const int lane = simt::lane(), from = lane - int(delta);
    return simt::shuffle("__shfl_up_sync", mask, value, from < simt::segment(width) ? lane : from);
}

template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
    const int lane = simt::lane(), from = lane + int(delta);
    return simt::shuffle("__shfl_down_sync", mask, value, from < simt::segment(width) + width ? from : lane);
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize) {
    const int lane = simt::lane(), from = lane ^ lane_mask;
    return simt::shuffle("__shfl_xor_sync", mask, value, from < simt::segment(width) + width ? from : lane);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return simt::ballot("__ballot_sync", mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) { return simt::ballot("__any_sync", mask, predicate != 0) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return simt::ballot("__all_sync", mask, predicate == 0) == 0; }

// The language only promises that the calling lane is active. A kernel that assumes more fails here, as it may on a GPU.
inline unsigned __activemask() { return 1u << simt::lane(); }
