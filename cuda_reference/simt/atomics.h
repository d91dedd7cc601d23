// Atomics, relaxed as in CUDA. They must be atomic because blocks run on several OS threads.
//
// On a GPU, other threads may see a thread's writes in another order than the program's; in the emulation they do not. So the
// emulation requires the fence: a thread that uses the result of an atomic acts on what other blocks have done, and publishes
// its own block's writes. That takes a __threadfence() before the atomic, after the barrier that follows the block's writes.
#pragma once
#include <type_traits>

#include "tensors.h"

namespace simt {

// The old value at an atomic's address; the fence is required only where it is used, as a T.
template <class T> struct OldValue {
    T value;

    operator T() const {
        if (!Block::current->self().fenced)
            fail("uses the result of an atomic without __threadfence() before it: other blocks may not see this one's writes");
        return value;
    }
};

template <class T, class Change> OldValue<T> atomic(T* address, Change change) {
    check_inside("an atomic", address, sizeof(T));
    T old, next;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do {
        next = change(old);
    } while (!__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return {old};
}

template <class T>
using Same = std::common_type_t<T>;  // not deduced, so that atomicAdd(float*, 1) converts as with CUDA's overloads

template <class T>
constexpr bool is_word = std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long>;

template <class T> constexpr bool can_add = is_word<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;

}  // namespace simt

template <class T> simt::OldValue<T> atomicAdd(T* address, simt::Same<T> value) {
    static_assert(simt::can_add<T>, "atomicAdd: int, unsigned, unsigned long long, float, double");
    return simt::atomic(address, [=](T old) -> T { return old + value; });
}

#define SIMT_ATOMIC(NAME, RESULT)                                                          \
    template <class T> simt::OldValue<T> NAME(T* address, simt::Same<T> value) {              \
        static_assert(simt::is_word<T>, #NAME ": int, unsigned, unsigned long long");      \
        return simt::atomic(address, [=]([[maybe_unused]] T old) -> T { return RESULT; }); \
    }
SIMT_ATOMIC(atomicSub, old - value)
SIMT_ATOMIC(atomicMax, old < value ? value : old)
SIMT_ATOMIC(atomicMin, value < old ? value : old)
SIMT_ATOMIC(atomicAnd, old& value)
SIMT_ATOMIC(atomicOr, old | value)
SIMT_ATOMIC(atomicXor, old ^ value)
#undef SIMT_ATOMIC

template <class T> simt::OldValue<T> atomicExch(T* address, simt::Same<T> value) {
    static_assert(simt::is_word<T> || std::is_same_v<T, float>, "atomicExch: int, unsigned, unsigned long long, float");
    return simt::atomic(address, [=](T) -> T { return value; });
}

template <class T> simt::OldValue<T> atomicCAS(T* address, simt::Same<T> expected, simt::Same<T> value) {
    static_assert(simt::is_word<T>, "atomicCAS: int, unsigned, unsigned long long");
    return simt::atomic(address, [=](T old) -> T { return old == expected ? value : old; });
}

inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    simt::Block::current->self().fenced = true;
}
inline void __threadfence_system() { __threadfence(); }
