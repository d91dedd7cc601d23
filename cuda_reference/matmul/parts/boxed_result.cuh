// The epilogue of a consumer whose result TMA writes, box by box (out_boxes.cuh).
#pragma once
#include "../../common/index.cuh"
#include "../../common/tma.cuh"
#include "addend.cuh"
#include "epilogue.cuh"
#include "lane_sums.cuh"
#include "out_boxes.cuh"
#include "pairs.cuh"
#include "tile_bias.cuh"

namespace matmul {

// Where the first result of a consumer is.
struct FirstResult {
    int row, col, batch;
};

template <class Block, class AddendBoxes> struct BoxedResult {
    using Sum = typename Block::Sum;
    using Number = Scalar<Sum>;
    using Boxes = typename Block::Boxes;
    static constexpr int BLOCKS = Block::BLOCKS, TILES = Block::TILES;
    static constexpr int OF_A_BOX = Boxes::TILES * Block::OF_A_RESULT;  // tiles of sums
    static constexpr int ACROSS = ceil_div(TILES, OF_A_BOX), BOXES = BLOCKS * ACROSS;
    using Sums = LaneSums<Sum>[BLOCKS][1][TILES];
    using Of = Epilogue<Sum, typename Block::Out>;

    const typename Block::Args& args;
    const TileBias<Number, typename Block::Out, Block::BN>& tile_bias;
    bool adds_bias;
    AddendBoxes& addend;
    int warp, lane;  // of the consumer, of the warp

    // Of a consumer's sums, the first of which is there in the result.
    __device__ __forceinline__ void store(Boxes& boxes, Sums& sum, const Of& epilogue, const FirstResult& at) const {
        if (adds_bias) tile_bias.share();
        // C by pointers and activations with exponentials are long code, which each call reads from memory: so that of a box or of
        // a part of one, in a loop. What is short is straight code, in which a sum's register is known.
        const bool is_short = Block::SCALED || (epilogue.c == nullptr && epilogue.activation <= RELU);
        if constexpr (Block::GATED) {
#pragma unroll 1
            for (int box = 0; box < BOXES; ++box) write_pairs(boxes, sum, epilogue, at, box);
        } else if (is_short && !addend.is_there()) {
#pragma unroll
            for (int box = 0; box < BOXES; ++box) write<SUMS>(boxes, sum, epilogue, at, box);
        } else if (IS_QUICK<typename Block::Out> && epilogue.c == nullptr && !addend.is_there()) {
#pragma unroll 1
            for (int box = 0; box < BOXES; ++box) write<ACTIVATED>(boxes, sum, epilogue, at, box);
        } else if (is_short) {
#pragma unroll
            for (int box = 0; box < BOXES; ++box) write<C_IN_BOXES>(boxes, sum, epilogue, at, box);
        } else {
#pragma unroll 1
            for (int box = 0; box < BOXES; ++box) write<EVERYTHING>(boxes, sum, epilogue, at, box);
        }
        addend.give_back_all();
    }

  private:
    // With bias, and ReLU; ACTIVATED: GELU or SiLU; EVERYTHING: any activation, and C from anywhere.
    enum What { SUMS, ACTIVATED, C_IN_BOXES, EVERYTHING };

    // Tiles whose results a thread has at once, next to its sums. A GELU takes three registers for each.
    __host__ __device__ static constexpr int at_once(What what) {
        if (what == EVERYTHING) return Block::CONSUMERS < 3 ? OF_A_BOX / 2 : 2;
        const bool whole = what == ACTIVATED ? Block::Threads::CONSUMER - Block::SUMS >= OF_A_BOX * 4 * 3 : !Block::Threads::ALL;
        return whole ? OF_A_BOX : OF_A_BOX / 2;
    }

    template <What WHAT>
    __device__ __forceinline__ void write(Boxes& boxes, Sums& sum, const Of& epilogue, const FirstResult& at, int box) const {
        constexpr bool MAY_HAVE_C = WHAT == C_IN_BOXES || WHAT == EVERYTHING;
        constexpr int AT_ONCE = at_once(WHAT);
        const int box_tile = first_tile(box % ACROSS, OF_A_BOX, TILES);
        const int box_row = at.row + box / ACROSS * 64, box_col = at.col + box_tile * 8;
        const auto fill = [&](unsigned char* to) {
            const unsigned char* const added = MAY_HAVE_C && addend.is_there() ? addend.box(box) : nullptr;
#pragma unroll 1
            for (int first = 0; first < OF_A_BOX; first += AT_ONCE) {
                Number results[1][AT_ONCE][4];
                scale<OF_A_BOX>(results, sum, (box * OF_A_BOX + first) / AT_ONCE, epilogue);
                const auto all = [&](const auto& change) { for_all(results, change); };
                if (WHAT == C_IN_BOXES || (WHAT == EVERYTHING && added != nullptr))
                    Boxes::add(results, epilogue.beta, added, first);
                else if constexpr (WHAT == EVERYTHING)
                    epilogue.add_c(all, box_row + warp * 16 + lane / 4, box_col + first * 8 + lane % 4 * 2, args.M, args.N);
                if (adds_bias) tile_bias.add(results, box_tile + first);
                if constexpr (WHAT == EVERYTHING)
                    epilogue.activate_all(all);
                else if constexpr (WHAT == ACTIVATED)
                    epilogue.activate_smoothly(all);
                else if (epilogue.activation == RELU)
                    all([](Number& result, int, int) { result = activate<typename Block::Out>(result, RELU); });
                boxes.fill(to, results, first);
            }
        };
        boxes.pass(fill, [&](const unsigned char* from) {
            if (MAY_HAVE_C && TILES % OF_A_BOX != 0 && box % ACROSS == ACROSS - 2) addend.wait_for_next(box);
            tma_store(boxes.map, from, box_col, box_row, at.batch);
        });
    }

    // A box of a gated linear unit.
    __device__ __forceinline__ void write_pairs(Boxes& boxes, Sums& sum, const Of& epilogue, const FirstResult& at, int box) const {
        constexpr int AT_ONCE = at_once(ACTIVATED) / 2;
        const int box_tile = first_tile(box % ACROSS, OF_A_BOX, TILES);
        const auto fill = [&](unsigned char* to) {
#pragma unroll 1
            for (int first = 0; first < OF_A_BOX; first += AT_ONCE) {
                Number results[1][AT_ONCE][4], gated[1][AT_ONCE / 2][4];
                scale<OF_A_BOX>(results, sum, (box * OF_A_BOX + first) / AT_ONCE, epilogue);
                if (adds_bias) tile_bias.add(results, box_tile + first);
                gate(gated, results, epilogue);
                boxes.fill(to, gated, first / 2);
            }
        };
        boxes.pass(fill, [&](const unsigned char* from) {
            tma_store(boxes.map, from, at.col / 2 + box_tile * 4, at.row + box / ACROSS * 64, at.batch);
        });
    }
};

}  // namespace matmul
