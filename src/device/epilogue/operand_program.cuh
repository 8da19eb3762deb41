// SPDX-License-Identifier: Apache-2.0
// Applies emitted programs of operands to blocks in shared memory: decodes and scales an element,
// reads the program's inputs for it, computes its value, rounds it.
#pragma once

#include <device/abi/operand_program.hpp>
#include <device/copy/scale_operand.cuh>
#include <device/epilogue/operations.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// An operand without a program.
struct NoProgram {
  static constexpr int inputs = 0;
  static constexpr int numbers = 0;
};

/// The programs of A and B, the types to which their values are rounded, and the type in which they
/// compute.
template <class ProgramOfA, DType element_of_a, class ProgramOfB, DType element_of_b, class Number>
struct OperandPrograms {
  using A = ProgramOfA;
  using B = ProgramOfB;
  using Compute = Number;
  using ParamsOfA = abi::OperandProgramParams<A::inputs, A::numbers, Compute>;
  using ParamsOfB = abi::OperandProgramParams<B::inputs, B::numbers, Compute>;
  static constexpr DType a = element_of_a;
  static constexpr DType b = element_of_b;
};
using NoPrograms = OperandPrograms<NoProgram, DType::float32, NoProgram, DType::float32, float>;

template <class Program>
GEMMERY_HOST_DEVICE
constexpr bool is_program() {
  return requires { Program::input; };
}

/// Params::Programs, or NoPrograms for parameters of kernels without programs.
template <class Params>
struct ProgramsIn {
  using Type = NoPrograms;
};
template <class Params>
requires requires { typename Params::Programs; }
struct ProgramsIn<Params> {
  using Type = typename Params::Programs;
};

/// The parameters of both programs, if the kernel has any.
template <class Programs>
struct ProgramsParams {
  const typename Programs::ParamsOfA* a;
  const typename Programs::ParamsOfB* b;
};

/// A place in an operand.
struct OperandPlace {
  unsigned batch;
  unsigned row;
  unsigned column;
};

/// The program's inputs at one place.
template <class Program, int input = 0, class Params, class Compute, int count>
__device__ __forceinline__ void load_inputs(Compute (&in)[count], const Params& params,
                                            const OperandPlace& at) {
  if constexpr (input < Program::inputs) {
    constexpr abi::EpilogueTensor tensor = Program::input[input];
    constexpr int bytes = abi::bytes_of(tensor.dtype);
    const abi::EpiloguePlace& place = params.input[input];
    abi::Int64 elements = 0;
    if constexpr (tensor.varies_l) elements += at.batch * place.batch_stride;
    if constexpr (tensor.varies_m) elements += at.row * place.row_stride;
    if constexpr (tensor.varies_n) elements += at.column * place.column_stride;
    const char* const source = static_cast<const char*>(place.data) + elements * bytes;
    in[input] = decode<tensor.dtype, Compute>(ptx::ld_global_nc<bytes>(source), 0);
    load_inputs<Program, input + 1>(in, params, at);
  }
}

/// The value that is multiplied in place of an element.
template <class Program, DType rounded, class Params, class Word>
__device__ __forceinline__ Word apply_program(Word element, const Params& params,
                                              const OperandPlace& at) {
  Word in[Program::inputs > 0 ? Program::inputs : 1]{};
  load_inputs<Program>(in, params, at);
  Word out[1];
  Program::template apply<Word>(element, in, params.number, out);
  return op::cast<rounded, abi::Rounding::nearest_even, abi::Overflow::natural>(out[0]);
}

/// All threads of the block share the elements, as in scale_words, which this includes. `is_a`:
/// lines are the operand's rows, otherwise its columns.
template <abi::CompanionTypes types, class Program, DType rounded, bool is_a, int extent,
          int k_elements, int pitch, int threads, class Params, class Word>
__device__ inline void program_words(Word* words, const abi::CompanionsParams& companions,
                                     const Params& params, const ScaledBlock& block) {
#pragma unroll 1
  for (int index = static_cast<int>(threadIdx.x); index < extent * k_elements; index += threads) {
    const unsigned line = block.first + static_cast<unsigned>(index % extent);
    const unsigned k = block.first_k + static_cast<unsigned>(index / extent);
    if (line >= block.end || k >= block.end_k) continue;
    Word& word = words[index / extent * pitch + index % extent];
    Word element = word;
    if constexpr (types.are_used())
      element = scale_element<types>(element, companions, block.batch, line, k);
    word = apply_program<Program, rounded>(
        element, params, OperandPlace{block.batch, is_a ? line : k, is_a ? k : line});
  }
}

}  // namespace gemmery::device
