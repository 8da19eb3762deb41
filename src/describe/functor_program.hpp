// SPDX-License-Identifier: Apache-2.0
// Functors as epilogue programs, and the numbers that they take.
#pragma once

#include <gemmery/describe.hpp>

#include <optional>
#include <vector>

namespace gemmery::describe {

// Throws Error for what does not go together with these accumulators and this C.
void check_functor(const EpilogueFunctor& functor, Element element_accumulator,
                   const TensorDescription& C);

// The program of a functor, over the accumulators or what stands in their place. Visitors have one
// of their own.
epilogue::Program functor_program(const EpilogueFunctor& functor, bool reads_c,
                                  const epilogue::Expression& accumulated = epilogue::accum());

// Whether a kernel's default program computes the same.
bool is_default_program(const EpilogueFunctor& functor) noexcept;

// Throws Error (invalid_argument) for a count of activation arguments that the functor does not
// have.
void check_output_op(const EpilogueFunctor& functor, const OutputOp& output_op);

// Throws like check_output_op.
OutputOp make_output_op(const EpilogueFunctor& functor, double alpha, double beta,
                        std::vector<double> activation_args);

// The operands that functor_program reads beside tensors.
std::vector<EpilogueOperand> functor_numbers(const EpilogueFunctor& functor,
                                             const OutputOp& output_op, bool reads_c);

}  // namespace gemmery::describe
