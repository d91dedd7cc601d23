// nvcuda::wmma: loads, stores and products of fragments. All 32 lanes must call each.
#pragma once
#include "mma_fragments.h"
#include "mma_multiply.h"

namespace nvcuda {
namespace wmma {
namespace detail {

struct Address {
    const void* pointer;
    unsigned ldm;
};

// Checks that the warp's lanes agree on one matrix of `bits`-bit elements.
inline void meet_at(const char* name, const void* pointer, unsigned ldm, int bits) {
    if (reinterpret_cast<uintptr_t>(pointer) % 32 != 0)
        simt::fail(std::string(name) + ": the pointer is not aligned to 32 bytes");
    if (ldm * bits % 128 != 0)
        simt::fail(std::string(name) + ": ldm " + std::to_string(ldm) + " of " + std::to_string(bits) +
                   "-bit elements is not a multiple of 16 bytes");
    if (simt::Block::current->warp_lanes() != warpSize)
        simt::fail(std::string(name) + " needs all 32 lanes; the block's last warp has fewer");
    Address address{pointer, ldm};
    simt::rendezvous_of_warp(name, 0xffffffff, address, [](simt::Thread* warp, int lanes, unsigned) {
        const auto& first = *static_cast<Address*>(warp[0].operand);
        for (int i = 1; i < lanes; ++i) {
            const auto& other = *static_cast<Address*>(warp[i].operand);
            if (other.pointer != first.pointer || other.ldm != first.ldm)
                simt::fail("the lanes of a warp load or store different WMMA tiles");
        }
    });
}

template <class Fragment>
constexpr int element_bits = 8 * sizeof(typename Fragment::storage_element_type) / packed<typename Fragment::element_type>;

// The address of this lane's storage element i.
template <class Fragment> size_t offset(int i, unsigned ldm, bool by_rows) {
    const unsigned element = i * warpSize + lane_of(simt::lane()), row = element / Fragment::cols,
                   col = element % Fragment::cols, pitch = ldm / packed<typename Fragment::element_type>;
    return by_rows ? size_t(row) * pitch + col : size_t(col) * pitch + row;
}

template <class Fragment> void load(Fragment& a, const void* pointer, unsigned ldm, bool by_rows) {
    meet_at("load_matrix_sync", pointer, ldm, element_bits<Fragment>);
    const auto* from = static_cast<const typename Fragment::storage_element_type*>(pointer);
    for (int i = 0; i < Fragment::num_storage_elements; ++i) a.x[i] = from[offset<Fragment>(i, ldm, by_rows)];
}

// Sub-byte operands have no type in memory.
template <class T> using In = std::conditional_t<(packed<T> > 1), void, typename StorageOf<T>::type>;

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& a, const typename detail::StorageOf<T>::type& value) {
    auto storage = value;
    if constexpr (detail::packed<T> > 1) {  // the low bits of `value` in every element
        constexpr unsigned ONES = (1u << 32 / detail::packed<T>)-1;
        storage = (value & ONES) * (0xFFFFFFFFu / ONES);
    }
    for (auto& x : a.x) x = storage;
}

template <class Use, int M, int N, int K, class T, class Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& a, const detail::In<T>* pointer, unsigned ldm) {
    static_assert(!std::is_same_v<Use, accumulator>, "loading an accumulator takes a layout_t");
    detail::load(a, pointer, ldm, std::is_same_v<Layout, row_major>);
}

template <int M, int N, int K, class T>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& a, const T* pointer, unsigned ldm, layout_t layout) {
    detail::load(a, pointer, ldm, layout == mem_row_major);
}

template <int M, int N, int K, class T>
void store_matrix_sync(T* pointer, const fragment<accumulator, M, N, K, T>& a, unsigned ldm, layout_t layout) {
    using Fragment = fragment<accumulator, M, N, K, T>;
    detail::meet_at("store_matrix_sync", pointer, ldm, detail::element_bits<Fragment>);
    for (int i = 0; i < a.num_elements; ++i)
        pointer[detail::offset<Fragment>(i, ldm, layout == mem_row_major)] = a.x[i];
}

template <int M, int N, int K, class D, class T, class LA, class LB, class C>
void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LA>& a,
              const fragment<matrix_b, M, N, K, T, LB>& b, const fragment<accumulator, M, N, K, C>& c) {
    static_assert(!std::is_same_v<T, detail::b1>, "bits are multiplied by bmma_sync");
    detail::multiply_together<experimental::bmmaBitOpXOR>("mma_sync", d, a, b, c, false);
}

// `satf` keeps an int accumulator from wrapping. The guide documents it for floating point too, but the header has no such
// overload, as PTX has had no such instruction since ISA 6.5.
template <int M, int N, int K, class T, class LA, class LB>
void mma_sync(fragment<accumulator, M, N, K, int>& d, const fragment<matrix_a, M, N, K, T, LA>& a,
              const fragment<matrix_b, M, N, K, T, LB>& b, const fragment<accumulator, M, N, K, int>& c, bool satf) {
    static_assert(!std::is_same_v<T, detail::b1>, "bits are multiplied by bmma_sync");
    detail::multiply_together<experimental::bmmaBitOpXOR>("mma_sync", d, a, b, c, satf);
}

template <int M, int N, int K, class LA, class LB>
void bmma_sync(fragment<accumulator, M, N, K, int>& d, const fragment<matrix_a, M, N, K, detail::b1, LA>& a,
               const fragment<matrix_b, M, N, K, detail::b1, LB>& b, const fragment<accumulator, M, N, K, int>& c,
               experimental::bmmaBitOp op = experimental::bmmaBitOpXOR,
               experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC) {
    if (op == experimental::bmmaBitOpXOR)
        detail::multiply_together<experimental::bmmaBitOpXOR>("bmma_sync", d, a, b, c, false);
    else
        detail::multiply_together<experimental::bmmaBitOpAND>("bmma_sync", d, a, b, c, false);
}

// Rounds to nearest, ties away from zero, as cvt.rna.tf32.f32 does; NaN and infinity stay.
inline float __float_to_tf32(float value) {
    const uint32_t pattern = simt::bits<uint32_t>(value);
    if ((pattern & 0x7F800000) == 0x7F800000) return value;
    return simt::bits<float>((pattern + 0x1000) & ~0x1FFFu);
}

}  // namespace wmma
}  // namespace nvcuda
