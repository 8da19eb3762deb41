// SPDX-License-Identifier: Apache-2.0
// The default epilogue, out = alpha * accumulator + beta * c, over the small dense pieces of a tile that a thread holds.
#pragma once

#include <device/abi/simt_design.hpp>
#include <device/abi/simt_params.hpp>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// A matrix as the epilogue sees it: the address of one of its elements, and the way to the others.
template <DType dtype, abi::Contiguity contiguity>
struct MatrixPiece {
    char* first;
    abi::Int64 row_stride;
    abi::Int64 column_stride;

    __device__ MatrixPiece(const abi::SimtMatrix& matrix, abi::UInt64 batch, unsigned row, unsigned column)
        : row_stride(contiguity == abi::Contiguity::column_major ? 1 : matrix.row_stride),
          column_stride(contiguity == abi::Contiguity::row_major ? 1 : matrix.column_stride) {
        const abi::Int64 elements = static_cast<abi::Int64>(batch) * matrix.batch_stride +
                                    static_cast<abi::Int64>(row) * row_stride + static_cast<abi::Int64>(column) * column_stride;
        first = static_cast<char*>(const_cast<void*>(matrix.data)) + elements * abi::bytes_of(dtype);
    }

    __device__ char* at(int row, int column) const {
        return first + (row * row_stride + column * column_stride) * abi::bytes_of(dtype);
    }
};

/// What remains of the matrix from a piece's first element on; the piece is cut to it.
struct PieceLimit {
    int rows;
    int columns;
};

/// Calls visit(row, column, count) for runs of adjacent elements that cover the piece: full vectors where they fit, else one by one.
template <int rows, int columns, bool is_along_row, int vector, class Visit>
__device__ inline void for_each_run(const PieceLimit& limit, Visit&& visit) {
    constexpr int length = is_along_row ? columns : rows;
    constexpr int run = vector < length ? vector : length;
#pragma unroll
    for (int row = 0; row < rows; row += is_along_row ? 1 : run) {
#pragma unroll
        for (int column = 0; column < columns; column += is_along_row ? run : 1) {
            const bool is_whole = row + (is_along_row ? 1 : run) <= limit.rows && column + (is_along_row ? run : 1) <= limit.columns;
            visit.template operator()<run>(row, column, is_whole);
        }
    }
}

template <DType dtype, abi::Contiguity contiguity, int vector_bytes, int rows, int columns, class Compute>
__device__ inline void add_scaled(Compute (&values)[rows][columns], Compute scale, const MatrixPiece<dtype, contiguity>& piece,
                                  const PieceLimit& limit) {
    constexpr bool is_along_row = contiguity != abi::Contiguity::column_major;
    constexpr int vector = vector_bytes / abi::bytes_of(dtype);
    for_each_run<rows, columns, is_along_row, vector>(limit, [&]<int run>(int row, int column, bool is_whole) {
        if (is_whole) {
            const auto loaded = ptx::ld_global<run * abi::bytes_of(dtype)>(piece.at(row, column));
#pragma unroll
            for (int position = 0; position < run; ++position) {
                Compute& value = values[row + (is_along_row ? 0 : position)][column + (is_along_row ? position : 0)];
                value += scale * decode<dtype, Compute>(loaded, position);
            }
        } else if constexpr (run > 1) {
#pragma unroll
            for (int position = 0; position < run; ++position) {
                const int at_row = row + (is_along_row ? 0 : position);
                const int at_column = column + (is_along_row ? position : 0);
                if (at_row < limit.rows && at_column < limit.columns) {
                    const auto loaded = ptx::ld_global<abi::bytes_of(dtype)>(piece.at(at_row, at_column));
                    values[at_row][at_column] += scale * decode<dtype, Compute>(loaded, 0);
                }
            }
        }
    });
}

template <DType dtype, abi::Contiguity contiguity, int vector_bytes, int rows, int columns, class Compute>
__device__ inline void store_piece(const Compute (&values)[rows][columns], const MatrixPiece<dtype, contiguity>& piece,
                                   const PieceLimit& limit) {
    constexpr bool is_along_row = contiguity != abi::Contiguity::column_major;
    constexpr int vector = vector_bytes / abi::bytes_of(dtype);
    for_each_run<rows, columns, is_along_row, vector>(limit, [&]<int run>(int row, int column, bool is_whole) {
        if (is_whole) {
            ptx::Registers<run * abi::bytes_of(dtype)> stored{};
#pragma unroll
            for (int position = 0; position < run; ++position) {
                place<dtype>(stored, position,
                             values[row + (is_along_row ? 0 : position)][column + (is_along_row ? position : 0)]);
            }
            ptx::st_global(piece.at(row, column), stored);
        } else if constexpr (run > 1) {
#pragma unroll
            for (int position = 0; position < run; ++position) {
                const int at_row = row + (is_along_row ? 0 : position);
                const int at_column = column + (is_along_row ? position : 0);
                if (at_row < limit.rows && at_column < limit.columns) {
                    ptx::Registers<abi::bytes_of(dtype)> stored{};
                    place<dtype>(stored, 0, values[at_row][at_column]);
                    ptx::st_global(piece.at(at_row, at_column), stored);
                }
            }
        }
    });
}

}  // namespace gemmery::device
