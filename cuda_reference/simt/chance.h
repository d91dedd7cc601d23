// Random orders of a seed: splitmix64 (G. Steele et al., Fast splittable pseudorandom number generators, 2014). Compiling
// <random> would take longer than most kernels.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace simt {

struct Chance {
    uint64_t state = 0;

    uint64_t operator()() {
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }

    // Fisher and Yates; the probabilities of orders differ by 2^-64 times the size.
    template <class T> void shuffle(std::vector<T>& items) {
        for (size_t left = items.size(); left > 1; --left) std::swap(items[left - 1], items[(*this)() % left]);
    }
};

}  // namespace simt
