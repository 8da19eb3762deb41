// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels without a matrix product: out = A + B, or any other epilogue program. They
// use the same calls and checks as a GEMM.
#pragma once

#include <string_view>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/export.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

// D = program( operands ), element by element. It is a GEMM of K = 0 whose epilogue reads all
// operands. It converts to GemmArguments, which `get_kernels`, `explain`, `supports`, `compile`,
// `run`, `bind` and artifacts take; `verify` takes its problem.
//
//   const ElementwiseArguments sum(a, b, out);                       // out = A + B
//   const ElementwiseArguments gated(gate, up, out, "D = silu(A) * B");
//   const ElementwiseArguments scaled(out, {"D = x * s", {{"x", x}, {"s", 0.5}}});
//   get_kernels(sum).at(0).run(sum, {.stream = stream});
//
// out is (N), (M, N) or (L, M, N), with any strides; tensors that are read broadcast to it by
// NumPy's rule. Packed tensors that all have out's shape, of any rank, are treated as one vector
// with M = 1. Programs are those of docs/epilogues.md: casts, several results, reductions; accum is
// 0 in them. They compute in float32; in float64 if a tensor is float64 or an integer of 32 bits,
// which is exact for integers.
class GEMMERY_API ElementwiseArguments {
 public:
  // With operands A and B, by these names, and `others`. Throws Error as EpilogueArguments and
  // GemmArguments do: invalid_argument, naming the operand, for shapes that do not broadcast to
  // out's, overlaps and devices that differ; unsupported for an out of other ranks.
  ElementwiseArguments(const Tensor& A, const Tensor& B, const Tensor& out,
                       std::string_view program = "D = A + B",
                       std::vector<EpilogueOperand> others = {});
  // With any number of operands.
  ElementwiseArguments(const Tensor& out, const EpilogueArguments& program);

  const GemmArguments& as_gemm() const noexcept { return gemm_; }
  operator const GemmArguments&() const noexcept { return gemm_; }  // NOLINT: is one
  const GemmProblem& problem() const noexcept { return gemm_.problem(); }
  Device device() const noexcept { return gemm_.device(); }

  // New memory or numbers for the same problem, as in GemmArguments. Operands are "out" and the
  // names of the program, "A" and "B" among them. (A PreparedLaunch calls those two "epilogue.A"
  // and "epilogue.B".)
  void set_data(std::string_view operand, const void* data);
  void set_scalar(std::string_view name, double value);

 private:
  GemmArguments gemm_;
};

}  // namespace gemmery
