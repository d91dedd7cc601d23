// A fragment from rows of 128 bytes, swizzled or in order.
#pragma once
#include "../../../cuda_reference/matmul/parts/swizzled_tile.cuh"

namespace swizzle {

template <bool SWIZZLED> __global__ void load(unsigned* out) {
    using Tile = matmul::SwizzledTile<unsigned short, true, 16, 64, true>;
    __shared__ __align__(128) unsigned short tile[Tile::SIZE];
    const int lane = threadIdx.x % 32;
    unsigned words[4];
    if (SWIZZLED)
        Tile::load(words, tile, Tile::fragment(0), 0, 0);
    else
        ldmatrix<false>(words, tile + lane % 16 * Tile::PITCH + lane / 16 * Tile::CHUNK);
    for (int i = 0; i < 4; ++i) out[lane * 4 + i] = words[i];
}

}  // namespace swizzle
