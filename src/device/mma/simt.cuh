// SPDX-License-Identifier: Apache-2.0
// Multiplication on CUDA cores: where a thread's accumulators lie in the tile, their operands from shared memory, their products.
//
// A thread's rows come in chunks of up to 16 bytes, so that one LDS feeds one chunk; chunks of neighbouring threads are adjacent, and a
// thread's next chunk lies beyond those of all threads. Columns likewise.
#pragma once

#include <device/abi/simt_design.hpp>
#include <device/ptx/integer.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// Along one index of the tile: how many elements a thread holds side by side, and how far its next ones are.
struct Spread {
    int chunk;
    int chunks;
    int step;

    GEMMERY_HOST_DEVICE constexpr int count() const { return chunk * chunks; }
    /// Position within the tile of the thread's element, less that of its first.
    GEMMERY_HOST_DEVICE constexpr int offset(int element) const { return element / chunk * step + element % chunk; }
};

GEMMERY_HOST_DEVICE constexpr Spread spread_of(int tile, int per_thread, int word_bytes) {
    const int widest = 16 / word_bytes;
    const int chunk = per_thread < widest ? per_thread : widest;
    return {.chunk = chunk, .chunks = per_thread / chunk, .step = tile / per_thread * chunk};
}

GEMMERY_HOST_DEVICE constexpr Spread row_spread(const abi::SimtDesign& design) {
    return spread_of(design.tile_m, design.thread_m, abi::word_bytes(design));
}

GEMMERY_HOST_DEVICE constexpr Spread column_spread(const abi::SimtDesign& design) {
    return spread_of(design.tile_n, design.thread_n, abi::word_bytes(design));
}

/// The place of a thread: the first row and column of the tile that it accumulates, and which part of each block of k.
struct SimtPlace {
    int row;
    int column;
    int slice;
};

template <abi::SimtDesign design>
__device__ inline SimtPlace place_of_thread(int thread) {
    constexpr int threads_m = design.tile_m / design.thread_m;
    constexpr int threads_n = design.tile_n / design.thread_n;
    constexpr int in_warp = abi::threads_per_slice(design) < 32 ? abi::threads_per_slice(design) : 32;
    constexpr int lanes_m_wanted = threads_m < 8 ? threads_m : 8;
    constexpr int lanes_n = in_warp / lanes_m_wanted < threads_n ? in_warp / lanes_m_wanted : threads_n;
    constexpr int lanes_m = in_warp / lanes_n;
    constexpr int warps_m = threads_m / lanes_m;

    const int within = thread % abi::threads_per_slice(design);
    const int lane = within % in_warp;
    const int warp = within / in_warp;
    // 8 x 4 lanes in the order that gives each half warp 8 chunks of A and 2 of B, so that both come in the fewest wavefronts.
    constexpr bool is_square = lanes_m == 8 && lanes_n == 4;
    const int lane_m = is_square ? (lane >> 1) & 7 : lane % lanes_m;
    const int lane_n = is_square ? (lane & 1) | ((lane >> 4) << 1) : lane / lanes_m;
    return {.row = (warp % warps_m * lanes_m + lane_m) * row_spread(design).chunk,
            .column = (warp / warps_m * lanes_n + lane_n) * column_spread(design).chunk,
            .slice = thread / abi::threads_per_slice(design)};
}

/// Reads the words of one operand that a thread multiplies at one k.
template <Spread spread, class Word>
__device__ __forceinline__ void load_fragment(Word (&words)[spread.count()], const Word* first) {
    struct alignas(sizeof(Word) * spread.chunk) Chunk {
        Word words[spread.chunk];
    };
#pragma unroll
    for (int chunk = 0; chunk < spread.chunks; ++chunk) {
        const Chunk loaded = *reinterpret_cast<const Chunk*>(first + chunk * spread.step);
#pragma unroll
        for (int position = 0; position < spread.chunk; ++position) {
            words[chunk * spread.chunk + position] = loaded.words[position];
        }
    }
}

template <abi::SimtDesign design>
__device__ inline float multiply_add(float a, float b, float sum) {
    return __fmaf_rn(a, b, sum);
}
template <abi::SimtDesign design>
__device__ inline double multiply_add(double a, double b, double sum) {
    return __fma_rn(a, b, sum);
}
template <abi::SimtDesign design>
__device__ inline int multiply_add(unsigned a, unsigned b, int sum) {
    return ptx::dp4a<design.a == DType::int8, design.b == DType::int8>(a, b, sum);
}

/// sums += a (column) * b (row).
template <abi::SimtDesign design, class Word, class Number>
__device__ __forceinline__ void multiply(Number (&sums)[design.thread_m][design.thread_n], const Word (&a)[design.thread_m],
                                         const Word (&b)[design.thread_n]) {
#pragma unroll
    for (int row = 0; row < design.thread_m; ++row) {
#pragma unroll
        for (int column = 0; column < design.thread_n; ++column) {
            sums[row][column] = multiply_add<design>(a[row], b[column], sums[row][column]);
        }
    }
}

}  // namespace gemmery::device
