// What each block of warp_specialized.cuh multiplies: whole tiles, then some slices of one that others share, or of several tails.
// Mirrors tritonkernels/conv2d_weight/parts/pieces.py, which says why.
#pragma once
#include "../../common/runs.cuh"

namespace conv2d_weight {

// Tiles in all, slices of each; tiles that a block computes whole; of each other one, heads, slices of a head, sharers of tails.
struct Cut {
    int tiles, slices, whole, heads, head, sharers;

    __device__ __forceinline__ int left() const { return tiles - whole; }
    __device__ __forceinline__ int tail() const { return slices - heads * head; }
    __device__ __forceinline__ Runs tails() const { return {int64_t(left()) * tail(), sharers}; }
};

// A tile's parts, in the order of their slices: this one's number, how many there are, and the most that a tile may have.
struct Part {
    int own, count, most;
};

// Calls compute(Piece) for each of this block's, at one place: ptxas makes wgmmas wait for each other if there are several.
template <class Compute> __device__ __forceinline__ void for_pieces(const Cut& cut, const Compute& compute) {
    const int left = cut.left(), head = blockIdx.x, sharer = head - left * cut.heads;
    const Runs runs = cut.tails();
    const bool shares = 0 <= sharer && sharer < cut.sharers;
    int64_t at = shares ? runs.begin(sharer) : 0;
    const int64_t end = sharer < 0 ? 1 : shares ? runs.begin(sharer + 1) : 0;  // one head, or slices of tails
#pragma unroll 1
    for (int tile = blockIdx.x; tile < cut.whole || at < end;) {
        Piece piece{tile, 0, cut.slices};
        if (tile < cut.whole) {
            tile += gridDim.x;
        } else if (shares) {
            piece = runs.shared(at, end, cut.whole, cut.tail());
            at += piece.count;
            piece.first += cut.heads * cut.head;
        } else {
            const int first = head / left * cut.head;
            piece = {cut.whole + head % left, first, min(cut.head, cut.slices - first)};
            at = end;
        }
        compute(piece);
    }
}

// Of a piece that is no whole tile.
__device__ __forceinline__ Part part_of(const Cut& cut, const Piece& piece) {
    if (cut.sharers == 0) return {piece.first / cut.head, cut.heads, cut.heads};
    const Sharers sharers = cut.tails().sharers_of(piece.tile - cut.whole, cut.tail());
    const int sharer = int(blockIdx.x) - cut.left() * cut.heads;
    const int own = sharer < 0 ? piece.first / cut.head : sharer - sharers.first + cut.heads;
    return {own, cut.heads + sharers.last - sharers.first + 1, cut.heads + 2};
}

}  // namespace conv2d_weight
