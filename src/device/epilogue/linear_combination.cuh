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

/// How a piece is cut into runs of adjacent elements, each one access. The matrix holds a run wholly or not at all: abi::SimtDesign asks
/// for vectors only where they divide the extent.
template <DType dtype, abi::Contiguity contiguity, int vector_bytes, int rows, int columns>
struct Runs {
    static constexpr bool is_along_row = contiguity != abi::Contiguity::column_major;
    static constexpr int length = is_along_row ? columns : rows;
    static constexpr int vector = vector_bytes / abi::bytes_of(dtype);
    static constexpr int run = vector < length ? vector : length;
    static constexpr int run_rows = is_along_row ? 1 : run;
    static constexpr int run_columns = is_along_row ? run : 1;
    static constexpr int per_row = columns / run_columns;
    static constexpr int count = rows / run_rows * per_row;

    GEMMERY_HOST_DEVICE static constexpr int row(int index, int position) {
        return index / per_row * run_rows + (is_along_row ? 0 : position);
    }
    GEMMERY_HOST_DEVICE static constexpr int column(int index, int position) {
        return index % per_row * run_columns + (is_along_row ? position : 0);
    }
    __device__ static bool is_within(const PieceLimit& limit, int index) {
        return row(index, 0) < limit.rows && column(index, 0) < limit.columns;
    }
};

/// values += scale * piece, within the limit.
template <DType dtype, abi::Contiguity contiguity, int vector_bytes, int rows, int columns, class Compute>
__device__ inline void add_scaled(Compute (&values)[rows][columns], Compute scale, const MatrixPiece<dtype, contiguity>& piece,
                                  const PieceLimit& limit) {
    using R = Runs<dtype, contiguity, vector_bytes, rows, columns>;
#pragma unroll
    for (int index = 0; index < R::count; ++index) {
        if (R::is_within(limit, index)) {
            const auto loaded = ptx::ld_global<R::run * abi::bytes_of(dtype)>(piece.at(R::row(index, 0), R::column(index, 0)));
#pragma unroll
            for (int position = 0; position < R::run; ++position) {
                values[R::row(index, position)][R::column(index, position)] += scale * decode<dtype, Compute>(loaded, position);
            }
        }
    }
}

/// Rounds values to the piece's type and stores them, within the limit.
template <DType dtype, abi::Contiguity contiguity, int vector_bytes, int rows, int columns, class Compute>
__device__ inline void store_piece(const Compute (&values)[rows][columns], const MatrixPiece<dtype, contiguity>& piece,
                                   const PieceLimit& limit) {
    using R = Runs<dtype, contiguity, vector_bytes, rows, columns>;
#pragma unroll
    for (int index = 0; index < R::count; ++index) {
        if (R::is_within(limit, index)) {
            ptx::Registers<R::run * abi::bytes_of(dtype)> stored{};
#pragma unroll
            for (int position = 0; position < R::run; ++position) {
                place<dtype>(stored, position, values[R::row(index, position)][R::column(index, position)]);
            }
            ptx::st_global(piece.at(R::row(index, 0), R::column(index, 0)), stored);
        }
    }
}

}  // namespace gemmery::device
