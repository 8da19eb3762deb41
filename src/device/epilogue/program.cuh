// SPDX-License-Identifier: Apache-2.0
// Runs an emitted epilogue on the elements of out that a thread holds: reads the program's inputs,
// applies it, stores its other results. D and the values to be reduced are returned to the caller.
//
// A thread's elements come in patches of `rows` by `columns`: columns adjacent, rows `row_step`
// apart. Tensors that do not vary with n are read once for all patches of the same rows.
//
// The arrays of an Epilogue are constants, not memory. They are visited by functions that take the
// index as a template argument and call themselves for the next one (NVRTC treats generic lambdas
// as host code).
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/abi/scale_layout.hpp>
#include <device/copy/element_run.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

GEMMERY_HOST_DEVICE
constexpr int at_least_one(int count) { return count > 0 ? count : 1; }

template <class Epilogue, class Compute>
using EpilogueParamsOf =
    abi::EpilogueParams<Epilogue::inputs, Epilogue::outputs, Epilogue::numbers, Compute>;

/// True if the program has reductions of blocks: Epilogue::reduce gives their operands, and
/// Epilogue::apply takes their values.
template <class Epilogue>
GEMMERY_HOST_DEVICE
constexpr bool has_blocks() {
  return requires { Epilogue::blocks; };
}

/// The values of blocks for a program that has none.
struct NoBlocks {};

/// An element whose block is reduced or read: its place in out, its patch's offset from a thread's
/// first column, its row in the patch, and its column in the patch's run.
struct BlockElement {
  unsigned row;
  unsigned column;
  int offset;
  int row_of_patch;
  int column_of_run;
};

/// The program's inputs for one patch, as loaded. Entries of inputs that are not read patch by
/// patch are never set and cost nothing.
template <class Epilogue, int rows, int columns>
struct LoadedPatch {
  unsigned words[at_least_one(Epilogue::inputs)][rows][2 * columns];
};

/// The addresses of a program's tensors in one matrix of the batch. Outputs that are reductions are
/// addressed elsewhere.
template <class Epilogue>
struct ProgramBatch {
  char* input[at_least_one(Epilogue::inputs)];
  char* output[at_least_one(Epilogue::outputs)];

  template <class Params>
  __device__ __forceinline__ ProgramBatch(const Params& params, unsigned batch) {
    begin_inputs(params, batch);
    begin_outputs(params, batch);
  }

 private:
  template <int at = 0, class Params>
  __device__ __forceinline__ void begin_inputs(const Params& params, unsigned batch) {
    if constexpr (at < Epilogue::inputs) {
      input[at] = first_of<Epilogue::input[at]>(params.input[at], batch);
      begin_inputs<at + 1>(params, batch);
    }
  }

  template <int at = 0, class Params>
  __device__ __forceinline__ void begin_outputs(const Params& params, unsigned batch) {
    if constexpr (at < Epilogue::outputs) {
      if constexpr (Epilogue::output[at].reduction == abi::Reduction::none)
        output[at] = first_of<Epilogue::output[at]>(params.output[at], batch);
      begin_outputs<at + 1>(params, batch);
    }
  }

  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ static char* first_of(const abi::EpiloguePlace& place,
                                                   unsigned batch) {
    if constexpr (!tensor.varies_l) return static_cast<char*>(place.data);
    return matrix_of_batch<abi::bytes_of(tensor.dtype)>(place.data, place.batch_stride, batch);
  }
};

/// The batch that ProgramRows takes, in kernels with and without arrays of pointers.
template <class Epilogue, bool has_pointers, class Params>
__device__ __forceinline__ auto program_batch(const Params& params, unsigned batch) {
  if constexpr (has_pointers)
    return ProgramBatch<Epilogue>(params, batch);
  else
    return batch;
}

/// Every input is read by ProgramRows: patch by patch if it varies with n, otherwise at once.
struct ReadsAllInputs {
  GEMMERY_HOST_DEVICE
  static constexpr bool reads(int) { return true; }
};

/// The `row_step` of rows that indices name.
enum : int { rows_by_index = 0 };

/// `Reader::reads(input)`: true if an input is read here. The caller puts the elements of other
/// inputs into patches, or passes them to `hold`.
template <class Epilogue, class Compute, int rows, int row_step, class Reader = ReadsAllInputs>
class ProgramRows {
 public:
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  /// `batch`: a ProgramBatch, or the number of a batch whose tensors are not arrays of pointers.
  /// `row` and `column` of the thread's first element in out, which has m rows and n columns.
  template <class Batch>
  __device__ __forceinline__ ProgramRows(const Params& params, const Batch& batch, unsigned row,
                                         unsigned column, unsigned m, unsigned n)
      : params_(params),
        rows_left_(row < m ? static_cast<int>(min(m - row, 0x7fffffffU)) : 0),
        columns_left_(column < n ? static_cast<int>(min(n - column, 0x7fffffffU)) : 0),
        row_(row),
        column_(column) {
    begin_inputs(batch, row, column);
    begin_outputs(batch, row, column);
  }
  /// The same of two rows that indices name. `Rows`: a ScatteredRows.
  template <class Batch, class Rows>
  __device__ __forceinline__ ProgramRows(const Params& params, const Batch& batch,
                                         const Rows& named, unsigned column, unsigned n)
      : params_(params),
        rows_left_((named.has_row[0] ? 1 : 0) | (named.has_row[1] ? 2 : 0)),
        columns_left_(column < n ? static_cast<int>(min(n - column, 0x7fffffffU)) : 0),
        between_(named.between),
        row_(static_cast<unsigned>(named.first)),
        column_(column) {
    static_assert(row_step == rows_by_index && rows == 2);
    begin_inputs(batch, static_cast<unsigned>(named.first), column);
    begin_outputs(batch, static_cast<unsigned>(named.first), column);
  }

  /// Reads the program's inputs for the patch that is `offset` columns after the first.
  template <int columns, int input = 0>
  __device__ __forceinline__ void load(LoadedPatch<Epilogue, rows, columns>& loaded,
                                       int offset) const {
    if constexpr (input < Epilogue::inputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
      if constexpr (tensor.varies_n && Reader::reads(input)) {
#pragma unroll
        for (int row = 0; row < (tensor.varies_m ? rows : 1); ++row)
          load_row<input>(loaded, row, offset);
      }
      load<columns, input + 1>(loaded, offset);
    }
  }

  /// Applies the program to the accumulators of a patch. D is `results[0]`; values to be reduced
  /// follow it in the order of the outputs; other outputs are stored. `Blocks`: a TileBlocks or
  /// LaneBlocks if the program has reductions of blocks.
  template <int columns, class Blocks = NoBlocks>
  __device__ __forceinline__ void apply(const LoadedPatch<Epilogue, rows, columns>& loaded,
                                        const Compute (&sums)[rows][columns], int offset,
                                        Compute (&results)[Epilogue::outputs + 1][rows][columns],
                                        [[maybe_unused]] const Blocks& blocks = {}) const {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
#pragma unroll
      for (int column = 0; column < columns; ++column) {
        Compute in[at_least_one(Epilogue::inputs)]{};
        gather(in, loaded, row, column);
        Compute out[Epilogue::outputs + 1];
        if constexpr (has_blocks<Epilogue>()) {
          Compute of_block[Epilogue::blocks];
          blocks.read(of_block, element(row, offset, column));
          Epilogue::template apply<Compute>(sums[row][column], in, params_.number, of_block, out);
        } else {
          Epilogue::template apply<Compute>(sums[row][column], in, params_.number, out);
        }
#pragma unroll
        for (int result = 0; result <= Epilogue::outputs; ++result)
          results[result][row][column] = out[result];
      }
    }
    store_outputs(results, offset);
  }

  /// Adds the elements of a patch to the reductions of their blocks.
  template <int columns, class Blocks>
  __device__ __forceinline__ void reduce(const LoadedPatch<Epilogue, rows, columns>& loaded,
                                         const Compute (&sums)[rows][columns], int offset,
                                         Blocks& blocks) const {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
#pragma unroll
      for (int column = 0; column < columns; ++column) {
        if (!has_row(row) || columns_left(offset) <= column) continue;
        Compute in[at_least_one(Epilogue::inputs)]{};
        gather(in, loaded, row, column);
        Compute reduced[Epilogue::blocks];
        Epilogue::template reduce<Compute>(sums[row][column], in, params_.number, reduced);
        blocks.add(reduced, element(row, offset, column));
      }
    }
  }

  /// The element of an input that does not vary with n, for one of the rows.
  template <int input>
  __device__ __forceinline__ void hold(int row, Compute value) {
    held_[input][row] = value;
  }

  __device__ int columns_left(int offset) const { return columns_left_ - offset; }
  __device__ bool has_row(int row) const {
    if constexpr (row_step == rows_by_index) return (rows_left_ >> row & 1) != 0;
    return row * row_step < rows_left_;
  }

 private:
  template <int input = 0, class Batch>
  __device__ __forceinline__ void begin_inputs(const Batch& batch, unsigned row, unsigned column) {
    if constexpr (input < Epilogue::inputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
      input_[input] =
          corner<tensor>(params_.input[input], origin_of_input<input>(batch), row, column);
      if constexpr (!tensor.varies_n && Reader::reads(input)) read_held<input>();
      begin_inputs<input + 1>(batch, row, column);
    }
  }

  template <int output = 0, class Batch>
  __device__ __forceinline__ void begin_outputs(const Batch& batch, unsigned row, unsigned column) {
    if constexpr (output < Epilogue::outputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
      if constexpr (is_of_blocks(tensor))
        output_[output] = origin_of_output<output>(batch);
      else if constexpr (tensor.reduction == abi::Reduction::none)
        output_[output] =
            corner<tensor>(params_.output[output], origin_of_output<output>(batch), row, column);
      begin_outputs<output + 1>(batch, row, column);
    }
  }

  /// The program's inputs at one element.
  template <int columns, int input = 0>
  __device__ __forceinline__ void gather(Compute (&in)[at_least_one(Epilogue::inputs)],
                                         const LoadedPatch<Epilogue, rows, columns>& loaded,
                                         int row, int column) const {
    if constexpr (input < Epilogue::inputs) {
      in[input] = value_of<input>(loaded, row, column);
      gather<columns, input + 1>(in, loaded, row, column);
    }
  }

  template <int columns, int output = 0>
  __device__ __forceinline__ void store_outputs(
      const Compute (&results)[Epilogue::outputs + 1][rows][columns], int offset) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_of_blocks(Epilogue::output[output]))
        store_blocks<output>(results[output + 1], offset);
      else if constexpr (Epilogue::output[output].reduction == abi::Reduction::none)
        store<output>(results[output + 1], offset);
      store_outputs<columns, output + 1>(results, offset);
    }
  }

  template <int input>
  __device__ __forceinline__ char* origin_of_input(const ProgramBatch<Epilogue>& batch) const {
    return batch.input[input];
  }
  template <int input>
  __device__ __forceinline__ char* origin_of_input(unsigned batch) const {
    return strided_origin<Epilogue::input[input]>(params_.input[input], batch);
  }
  template <int output>
  __device__ __forceinline__ char* origin_of_output(const ProgramBatch<Epilogue>& batch) const {
    return batch.output[output];
  }
  template <int output>
  __device__ __forceinline__ char* origin_of_output(unsigned batch) const {
    return strided_origin<Epilogue::output[output]>(params_.output[output], batch);
  }

  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ static char* strided_origin(const abi::EpiloguePlace& place,
                                                         unsigned batch) {
    if constexpr (!tensor.varies_l) return static_cast<char*>(place.data);
    return static_cast<char*>(place.data) +
           static_cast<abi::Int64>(batch) * place.batch_stride * abi::bytes_of(tensor.dtype);
  }

  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ static char* corner(const abi::EpiloguePlace& place, char* origin,
                                                 unsigned row, unsigned column) {
    abi::Int64 elements = 0;
    if constexpr (tensor.varies_m) elements += static_cast<abi::Int64>(row) * place.row_stride;
    if constexpr (tensor.varies_n)
      elements += static_cast<abi::Int64>(column) * place.column_stride;
    return origin + elements * abi::bytes_of(tensor.dtype);
  }

  __device__ int step() const { return row_step == rows_by_index ? between_ : row_step; }
  __device__ abi::Int64 row_bytes(const abi::EpiloguePlace& place, DType dtype, int row) const {
    return row * step() * place.row_stride * abi::bytes_of(dtype);
  }

  /// Reads a tensor that does not vary with n. Threads without an element of out read nothing: a
  /// tensor may be exactly out, which others may have written by then.
  template <int input>
  __device__ __forceinline__ void read_held() {
    constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
    constexpr int bytes = abi::bytes_of(tensor.dtype);
#pragma unroll
    for (int row = 0; row < (tensor.varies_m ? rows : 1); ++row) {
      const char* const source =
          input_[input] +
          (tensor.varies_m ? row_bytes(params_.input[input], tensor.dtype, row) : 0);
      const auto loaded = ptx::ld_global_if<bytes>(has_row(row) && columns_left_ > 0, source, {});
      held_[input][row] = decode<tensor.dtype, Compute>(loaded, 0);
    }
  }

  template <int input, int columns>
  __device__ __forceinline__ void load_row(LoadedPatch<Epilogue, rows, columns>& loaded, int row,
                                           int offset) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
    constexpr int bytes = abi::bytes_of(tensor.dtype);
    const abi::EpiloguePlace& place = params_.input[input];
    const abi::Int64 step = place.column_stride * bytes;
    const char* const first = input_[input] +
                              (tensor.varies_m ? row_bytes(place, tensor.dtype, row) : 0) +
                              (tensor.vector_bytes > 0 ? offset * bytes : offset * step);
    const auto run = load_run<tensor.dtype, tensor.vector_bytes, columns>(
        first, has_row(row) ? columns_left(offset) : 0, step);
#pragma unroll
    for (int word = 0; word < static_cast<int>(sizeof run / 4); ++word)
      loaded.words[input][row][word] = run.words[word];
  }

  template <int input, int columns>
  __device__ __forceinline__ Compute value_of(const LoadedPatch<Epilogue, rows, columns>& loaded,
                                              int row, int column) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
    if constexpr (!tensor.varies_n) {
      return held_[input][tensor.varies_m ? row : 0];
    } else {
      LoadedRun<tensor.dtype, columns> run;
#pragma unroll
      for (int word = 0; word < static_cast<int>(sizeof run / 4); ++word)
        run.words[word] = loaded.words[input][tensor.varies_m ? row : 0][word];
      return decode<tensor.dtype, Compute>(run, column);
    }
  }

  template <int output, int columns>
  __device__ __forceinline__ void store(const Compute (&values)[rows][columns], int offset) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    constexpr int bytes = abi::bytes_of(tensor.dtype);
    const abi::EpiloguePlace& place = params_.output[output];
    const abi::Int64 step = place.column_stride * bytes;
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      char* const first = output_[output] + row_bytes(place, tensor.dtype, row) +
                          (tensor.vector_bytes > 0 ? offset * bytes : offset * step);
      store_run<tensor.dtype, tensor.vector_bytes, columns>(
          first, values[row], has_row(row) ? columns_left(offset) : 0, step);
    }
  }

  /// The first element of each block stores its value.
  template <int output, int columns>
  __device__ __forceinline__ void store_blocks(const Compute (&values)[rows][columns],
                                               int offset) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    constexpr int bytes = abi::bytes_of(tensor.dtype);
#pragma unroll
    for (int row = 0; row < rows; ++row) {
#pragma unroll
      for (int column = 0; column < columns; ++column) {
        const unsigned m = row_of(row);
        const unsigned n = column_of(offset + column);
        const bool is_first = begins_block<tensor.block_rows>(m) &&
                              begins_block<tensor.block_columns>(n) && has_row(row) &&
                              columns_left(offset) > column;
        ptx::Registers<bytes> value{};
        place<tensor.dtype>(value, 0, values[row][column]);
        const abi::Int64 at =
            place_of_block<tensor>(params_.output[output], block_of<tensor.block_rows>(m),
                                   block_of<tensor.block_columns>(n));
        if (is_first) ptx::st_global<bytes>(output_[output] + at * bytes, value);
      }
    }
  }

  template <unsigned block>
  __device__ __forceinline__ static bool begins_block(unsigned index) {
    if constexpr (block == 0) return index == 0;
    return index % (block == 0 ? 1 : block) == 0;
  }
  template <unsigned block>
  __device__ __forceinline__ static unsigned block_of(unsigned index) {
    if constexpr (block == 0) return 0;
    return index / (block == 0 ? 1 : block);
  }
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ static abi::Int64 place_of_block(const abi::EpiloguePlace& place,
                                                              unsigned down, unsigned along) {
    if constexpr (!tensor.is_swizzled) return down * place.row_stride + along * place.column_stride;
    return tensor.block_rows == 1 ? abi::swizzled_offset(down, along, place.row_stride)
                                  : abi::swizzled_offset(along, down, place.row_stride);
  }

  __device__ BlockElement element(int row, int offset, int column) const {
    return {row_of(row), column_of(offset + column), offset, row, column};
  }
  __device__ unsigned row_of(int row) const { return row_ + static_cast<unsigned>(row * step()); }
  __device__ unsigned column_of(int offset) const {
    return column_ + static_cast<unsigned>(offset);
  }

  const Params& params_;
  const char* input_[at_least_one(Epilogue::inputs)];
  char* output_[at_least_one(Epilogue::outputs)];
  Compute held_[at_least_one(Epilogue::inputs)][rows];
  int rows_left_;     // from the thread's first row; of rows by index a bit for each that exists
  int columns_left_;  // from its first column
  int between_ = 0;   // of rows by index: from the first to the second
  unsigned row_ = 0;  // of the thread's first element; for blocks
  unsigned column_ = 0;
};

}  // namespace gemmery::device
