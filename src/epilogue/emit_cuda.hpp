// SPDX-License-Identifier: Apache-2.0
// An epilogue as CUDA C++: the struct that device/epilogue executes.
#pragma once

#include <string>
#include <string_view>

#include <gemmery/epilogue.hpp>

namespace gemmery::epilogue {

// The text of `struct Epilogue` for an interned program, without its namespace; it needs
// <device/abi/epilogue.hpp> and <device/epilogue/operations.cuh>:
//
//   static constexpr int inputs, outputs (beside D), numbers;
//   static constexpr int slow_results;                     count_slow_results, per element
//   static constexpr int addend;                           the result of find_addend
//   static constexpr bool reduces_zeros_to_nothing;        the same of zeros.hpp
//   static constexpr EpilogueTensor input[], output[];     one element where there is none
//   static constexpr int blocks; EpilogueBlock block[];    of a program with reductions of blocks
//   template <class T> static void reduce(T accum, const T (&in)[], const T (&number)[], T
//   (&out)[]);                                             the operands of these reductions
//   template <class T> static void apply(T accum, const T (&in)[], const T (&number)[], T
//   (&out)[]);
//
// Before `out`, apply takes the values of reductions of blocks, if there are any; such reductions
// are not within each other. Elements of `in` and `number` follow the program's inputs; those of
// `out` are D and then the results in `output`'s order. `is_turned`: the kernel computes the
// transpose of out, so that its m is the program's n. `is_brief`: uses brief formulas. The result
// contains no name of the program's text. `name`: of the struct, other than Epilogue for programs
// of operands.
std::string emit_struct(EpilogueId epilogue, bool is_turned, bool is_brief = false,
                        std::string_view name = "Epilogue");

}  // namespace gemmery::epilogue
