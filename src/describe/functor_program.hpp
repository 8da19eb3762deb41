// SPDX-License-Identifier: Apache-2.0
// Functors as epilogue programs, and the scalars that they take.
#pragma once

#include <gemmery/describe.hpp>

#include <optional>
#include <vector>

namespace gemmery::describe {

// Throws Error if the functor does not fit these accumulators and this C.
void check_functor(const EpilogueFunctor& functor, Element element_accumulator,
                   const TensorDescription& C);

// The program of a functor, applied to the accumulators or to a tensor in their place. A visitor
// has a program of its own.
epilogue::Program functor_program(const EpilogueFunctor& functor, bool reads_c,
                                  const epilogue::Expression& accumulated = epilogue::accum());

// True if a kernel's default program computes the same.
bool is_default_program(const EpilogueFunctor& functor) noexcept;

// Throws Error (invalid_argument) if the functor does not take that number of activation arguments.
void check_output_op(const EpilogueFunctor& functor, const OutputOp& output_op);

// Throws like check_output_op.
OutputOp make_output_op(const EpilogueFunctor& functor, double alpha, double beta,
                        std::vector<double> activation_args);

// The scalar operands that functor_program reads.
std::vector<EpilogueOperand> functor_numbers(const EpilogueFunctor& functor,
                                             const OutputOp& output_op, bool reads_c);

}  // namespace gemmery::describe
