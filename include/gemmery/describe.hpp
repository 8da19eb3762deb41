// SPDX-License-Identifier: Apache-2.0
// The explicit description: specifies one kernel exactly, instead of searching for one. The names
// are PyCUTLASS's. docs/describe.md has the table of valid combinations and the differences.
//
//   using namespace gemmery::describe;
//   const MathInstruction math({16, 8, 16}, Element::float16, Element::float16, Element::float32,
//                              OpcodeClass::TensorOp);
//   const TileDescription tile({128, 128, 32}, 4, {2, 2, 1}, math);
//   const TensorDescription A(Element::float16, Layout::RowMajor, 8);
//   const TensorDescription B(Element::float16, Layout::ColumnMajor, 8);
//   const TensorDescription C(Element::float32, Layout::RowMajor, 4);
//   const GemmOperationUniversal operation(80, tile, A, B, C,
//                                          LinearCombination(C.element, C.alignment));
//   const GemmArguments arguments(operation, {512, 256, 128}, {a, b, c, d}, device);
//   operation.run(arguments, stream);
//
// An operation is an ordinary kernel: it has metadata, a name that find_kernel reads back, an
// artifact and an entry in the cache. An invalid description throws Error naming the field, before
// a compiler starts: invalid_argument if the values contradict each other, unsupported if no kernel
// exists for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/artifact.hpp>
#include <gemmery/device.hpp>
#include <gemmery/dtype.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/export.hpp>
#include <gemmery/functors.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/print.hpp>
#include <gemmery/stream.hpp>

namespace gemmery::describe {

using gemmery::operator<<;  // prints the types of this header, too

// --- enumerations -------------------------------------------------------------------------------

enum class OpcodeClass : std::uint8_t { Simt, TensorOp };

// The last five are not supported: a description with one of them is refused by its name.
enum class MathOperation : std::uint8_t {
  multiply_add,
  multiply_add_saturate,   // 8-bit integers; int32 accumulators clamp at every mma
  multiply_add_fast_f32,   // float32 by three products of TF32
  multiply_add_fast_f16,   // float32 rounded to float16
  multiply_add_fast_bf16,  // float32 rounded to bfloat16
  xor_popc,
  multiply_add_complex,
  multiply_add_complex_gaussian,
  multiply_add_complex_fast_f32,
  multiply_add_mixed_input_upcast
};

// tfloat32 is stored as float32.
enum class Element : std::uint8_t {
  int8,
  uint8,
  int32,
  float16,
  bfloat16,
  float32,
  tfloat32,
  float64,
  float8_e4m3fn,
  float8_e5m2
};
GEMMERY_API DType storage_type(Element element) noexcept;

// Interleaved layouts store 32 elements of one index contiguously (docs/describe.md); the Tensor
// layouts belong to convolutions.
enum class Layout : std::uint8_t {
  RowMajor,
  ColumnMajor,
  RowMajorInterleaved32,
  ColumnMajorInterleaved32,
  TensorNHWC,
  TensorNC32HW32,
  TensorC32RSK32
};

// The order in which tiles are visited; results do not depend on it. IdentityN visits bands of N
// columns of tiles, row by row. Those of a strided dgrad are taken by Conv2dOperation alone
// (describe_conv.hpp).
enum class SwizzlingFunctor : std::uint8_t {
  IdentitySwizzle1,
  IdentitySwizzle2,
  IdentitySwizzle4,
  IdentitySwizzle8,
  HorizontalSwizzle,
  BatchedIdentitySwizzle,
  StridedDgradIdentitySwizzle1,
  StridedDgradIdentitySwizzle4,
  StridedDgradHorizontalSwizzle
};

GEMMERY_API std::string_view name(OpcodeClass opcode_class) noexcept;
GEMMERY_API std::string_view name(MathOperation operation) noexcept;
GEMMERY_API std::string_view name(Element element) noexcept;
GEMMERY_API std::string_view name(Layout layout) noexcept;
GEMMERY_API std::string_view name(SwizzlingFunctor swizzle) noexcept;

// --- descriptions -------------------------------------------------------------------------------

struct MathInstruction {
  std::array<int, 3> instruction_shape;  // {1, 1, 1} in Simt, {1, 1, 4} for 8-bit integers there
  Element element_a;                     // the instruction's operand types; they may differ from
  Element element_b;                     // the tensors': tfloat32, float16 or bfloat16
  Element element_accumulator;
  OpcodeClass opcode_class = OpcodeClass::Simt;
  MathOperation math_operation = MathOperation::multiply_add;

  friend bool operator==(const MathInstruction&, const MathInstruction&) = default;
};

struct TileDescription {
  std::array<int, 3> threadblock_shape;
  int stages;                     // blocks of k in shared memory at once
  std::array<int, 3> warp_count;  // the third one splits each block of k (sliced-K)
  MathInstruction math_instruction;
  std::array<int, 3> cluster_shape = {1, 1, 1};

  GEMMERY_API int num_threads() const noexcept;
  friend bool operator==(const TileDescription&, const TileDescription&) = default;
};

struct TensorDescription {
  Element element;
  Layout layout;
  int alignment = 1;  // elements; at most 16 bytes

  friend bool operator==(const TensorDescription&, const TensorDescription&) = default;
};

// What a name in a visitor's program denotes: an M x N tensor with D's layout, a row of N numbers,
// a column of M numbers, or a scalar of the launch. For a result it is the shape: a reduction over
// n gives a column.
struct VisitorOperand {
  enum class Kind : std::uint8_t { tensor, row, column, scalar };
  std::string name;
  Kind kind = Kind::tensor;
  Element element = Element::float32;  // of tensor, row and column

  friend bool operator==(const VisitorOperand&, const VisitorOperand&) = default;
};

// The epilogue functor. The functions below make one.
struct EpilogueFunctor {
  enum class Kind : std::uint8_t {
    linear_combination,
    linear_combination_clamp,
    fast_linear_combination_clamp,
    linear_combination_generic,
    visitor
  };
  Kind kind = Kind::linear_combination;
  epilogue::Activation activation = epilogue::Activation::identity;
  Element element_output = Element::float32;
  int epilogue_vector_length = 1;  // elements of C and D per access: C's alignment
  Element element_accumulator = Element::float32;
  Element element_compute = Element::float32;
  std::optional<gemmery::epilogue::Program> program = std::nullopt;  // of a visitor
  std::vector<VisitorOperand> operands = {};                         // of a visitor

  friend bool operator==(const EpilogueFunctor&, const EpilogueFunctor&) = default;
};

// D = fma(alpha, accum, beta * C), rounded to nearest even; integers saturate. With beta = 0, C is
// not read and may be absent. The default accumulator and compute type is float32; for a float64
// output both are float64, for an integer output they are int32 and float32.
GEMMERY_API EpilogueFunctor
LinearCombination(Element element_output, int epilogue_vector_length,
                  std::optional<Element> element_accumulator = std::nullopt,
                  std::optional<Element> element_compute = std::nullopt);
// The same, clamped to the output's range before it is rounded.
GEMMERY_API EpilogueFunctor
LinearCombinationClamp(Element element_output, int epilogue_vector_length,
                       std::optional<Element> element_accumulator = std::nullopt,
                       std::optional<Element> element_compute = std::nullopt);
// LinearCombinationClamp of int32 accumulators to 8-bit integers, computed in float32, for any K.
GEMMERY_API EpilogueFunctor FastLinearCombinationClamp(Element element_output,
                                                       int epilogue_vector_length);
// D = activation(fma(alpha, accum, beta * C)); leaky_relu has one more argument, leaky_alpha.
GEMMERY_API EpilogueFunctor LinearCombinationGeneric(
    epilogue::Activation activation, Element element_output, int epilogue_vector_length,
    std::optional<Element> element_accumulator = std::nullopt,
    std::optional<Element> element_compute = std::nullopt);
// Any epilogue program; its D is stored to D. `operands` lists every name that the program reads,
// and the results other than D that are stored.
GEMMERY_API EpilogueFunctor EpilogueVisitTree(gemmery::epilogue::Program program,
                                              std::vector<VisitorOperand> operands,
                                              Element element_output, int epilogue_vector_length,
                                              Element element_accumulator = Element::float32);

struct GemmDescription {
  int compute_capability;  // 80, 86, 87, 89, 90, 100, 103, 110, 120, 121
  TileDescription tile_description;
  TensorDescription A;
  TensorDescription B;
  TensorDescription C;  // D, too
  EpilogueFunctor epilogue_functor;
  SwizzlingFunctor swizzling_functor = SwizzlingFunctor::IdentitySwizzle1;
  bool visitor = false;  // true with EpilogueVisitTree, and only then

  friend bool operator==(const GemmDescription&, const GemmDescription&) = default;
};

// The description as text of several lines, spelled as a user's program spells it.
GEMMERY_API std::string to_string(const MathInstruction& instruction);
GEMMERY_API std::string to_string(const TileDescription& tile);
GEMMERY_API std::string to_string(const TensorDescription& tensor);
GEMMERY_API std::string to_string(const EpilogueFunctor& functor);
GEMMERY_API std::string to_string(const GemmDescription& description);

// --- arguments of a functor ---------------------------------------------------------------------

// The arguments of the functor for one launch.
struct OutputOp {
  double alpha = 1;
  double beta = 0;
  std::vector<double> activation_args = {};    // of leaky_relu: leaky_alpha, 0.2 if it is absent
  std::vector<EpilogueOperand> operands = {};  // of a visitor: every name of its program but D
};

// --- GEMM ---------------------------------------------------------------------------------------

class GemmArguments;

// The described kernel, for Mode::Gemm without split k. For other modes `for_arguments` returns a
// kernel of the same design, with split k or another shape of C.
class GEMMERY_API GemmOperationUniversal : public Kernel {
 public:
  explicit GemmOperationUniversal(GemmDescription description);
  GemmOperationUniversal(int compute_capability, const TileDescription& tile_description,
                         const TensorDescription& A, const TensorDescription& B,
                         const TensorDescription& C, const EpilogueFunctor& epilogue_functor,
                         SwizzlingFunctor swizzling_functor = SwizzlingFunctor::IdentitySwizzle1,
                         bool visitor = false)
      : GemmOperationUniversal(GemmDescription{compute_capability, tile_description, A, B, C,
                                               epilogue_functor, swizzling_functor, visitor}) {}

  const GemmDescription& description() const noexcept { return *description_; }
  Target target() const noexcept;  // of its compute capability

  // The CUDA C++ source. Equal descriptions give equal text.
  std::string emit() const;

  // Checks the scalars against the functor. Throws Error (invalid_argument) for a wrong count.
  OutputOp epilogue_type(double alpha, double beta = 0,
                         std::vector<double> activation_args = {}) const;

  // Enqueues the work on a stream and returns; compiles first if necessary. Throws like
  // Kernel::run.
  void run(const GemmArguments& arguments, Stream stream) const;

  friend bool operator==(const GemmOperationUniversal& x, const GemmOperationUniversal& y) {
    return x.description() == y.description();
  }

 private:
  std::shared_ptr<const GemmDescription> description_;
};

struct GemmCoord {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  friend bool operator==(const GemmCoord&, const GemmCoord&) = default;
};

enum class Mode : std::uint8_t {
  Gemm,                // split_k_slices > 1: slices are accumulated one after the other
  GemmSplitKParallel,  // slices store their accumulators, which are then added in order
  Batched,             // `batch` products, their operands packed one after the other
  Array                // `batch` products, each with its own pointers
};
GEMMERY_API std::string_view name(Mode mode) noexcept;

// The operands in memory, packed in their layouts: one pointer each, or in Array one pointer per
// product. C may be empty with beta = 0. The caller owns the memory.
struct GemmPointers {
  std::vector<const void*> A;
  std::vector<const void*> B;
  std::vector<const void*> C;
  std::vector<void*> D;
};

struct GemmOptions {
  Mode gemm_mode = Mode::Gemm;
  OutputOp output_op = {};
  int split_k_slices = 1;
  int batch = 1;
  bool bias = false;  // C is one row (of N numbers) for each product, added to every row of D
};

// The accumulators of a GemmSplitKParallel: `slices` packed row-major matrices of M x N.
struct Partials {
  void* data = nullptr;
  DType dtype = DType::float32;
  std::int64_t slices = 0;  // at most split_k_slices; no slice is empty
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Device device = {};
};

// Operands of one operation, checked against its description. Copies share the workspace.
class GEMMERY_API GemmArguments {
 public:
  // Throws Error: invalid_argument for a size or pointer that is not a multiple of the alignment,
  // for wrong counts of pointers, and for a beta without C; unsupported if the device is older than
  // the operation's compute capability; out_of_memory for the partial sums.
  GemmArguments(const GemmOperationUniversal& operation, const GemmCoord& problem_size,
                const GemmPointers& pointers, Device device, const GemmOptions& options = {});

  const GemmCoord& problem_size() const noexcept;
  Device device() const noexcept;
  Mode gemm_mode() const noexcept;

  // The kernels that `run` launches, in order; usually one.
  std::vector<Kernel> kernels() const;

  // The partial sums of GemmSplitKParallel. After this call `run` no longer computes D; a
  // ReductionOperation does. Throws Error (invalid_argument) in other modes.
  Partials partials() const;

  struct State;
  const std::shared_ptr<State>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// --- grouped GEMM -------------------------------------------------------------------------------

// Where PyCUTLASS computes the tiles of problems. Here sizes are in host memory in both modes, and
// problems of equal size share a launch, so both give the same launches and bits.
enum class SchedulerMode : std::uint8_t { Device, Host };
GEMMERY_API std::string_view name(SchedulerMode mode) noexcept;

class GemmGroupedArguments;

// The described kernel for a list of problems of different sizes. A visitor is refused.
class GEMMERY_API GemmOperationGrouped : public GemmOperationUniversal {
 public:
  explicit GemmOperationGrouped(GemmDescription description,
                                SchedulerMode precompute_mode = SchedulerMode::Device);

  SchedulerMode precompute_mode() const noexcept { return precompute_mode_; }

  // Enqueues the work on a stream and returns; compiles first if necessary. Throws like
  // Kernel::run.
  void run(const GemmGroupedArguments& arguments, Stream stream) const;

  friend bool operator==(const GemmOperationGrouped& x, const GemmOperationGrouped& y) {
    return x.precompute_mode_ == y.precompute_mode_ && x.description() == y.description();
  }

 private:
  SchedulerMode precompute_mode_;
};

// The operands of each problem, packed in their layouts. Problems of equal size share a launch, so
// there are as many launches as different sizes; interleaved layouts add copies.
class GEMMERY_API GemmGroupedArguments {
 public:
  // `pointers` has one of each operand for each problem; C may be empty with beta = 0. The caller
  // owns the memory. Throws Error like GemmArguments, naming the problem: "problem_sizes[3].m",
  // "A[3]"; invalid_argument for lists of other lengths than problem_sizes.
  GemmGroupedArguments(const GemmOperationGrouped& operation, std::vector<GemmCoord> problem_sizes,
                       const GemmPointers& pointers, Device device, const OutputOp& output_op = {});

  const std::vector<GemmCoord>& problem_sizes() const noexcept;
  Device device() const noexcept;

  // The kernels that `run` launches, in order.
  std::vector<Kernel> kernels() const;

  struct State;
  const std::shared_ptr<const State>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// --- reduction ----------------------------------------------------------------------------------

struct ReductionDescription {
  std::array<int, 2> shape = {4, 128};  // of a block of threads; ignored
  TensorDescription C;                  // of source and destination: RowMajor
  Element element_accumulator;          // of the partial sums
  Element element_compute;
  EpilogueFunctor epilogue_functor;
  int count = 1;  // elements per access: C's alignment
  int partitions_per_stage = 4;

  friend bool operator==(const ReductionDescription&, const ReductionDescription&) = default;
};
GEMMERY_API std::string to_string(const ReductionDescription& description);

class ReductionArguments;

// D = functor( sum of the partial sums, in their order ).
class GEMMERY_API ReductionOperation {
 public:
  explicit ReductionOperation(ReductionDescription description);
  const ReductionDescription& description() const noexcept { return *description_; }
  OutputOp epilogue_type(double alpha, double beta = 0,
                         std::vector<double> activation_args = {}) const;
  void run(const ReductionArguments& arguments, Stream stream) const;

  friend bool operator==(const ReductionOperation& x, const ReductionOperation& y) {
    return x.description() == y.description();
  }

 private:
  std::shared_ptr<const ReductionDescription> description_;
};

class GEMMERY_API ReductionArguments {
 public:
  // `source` is C, or null with beta = 0; with `bias` a row of N numbers. Throws Error
  // (invalid_argument) if the partial sums do not have the operation's type.
  ReductionArguments(const ReductionOperation& operation, const Partials& workspace,
                     void* destination, const void* source, const OutputOp& output_op = {},
                     bool bias = false);

  struct State;
  const std::shared_ptr<const State>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// --- many operations ----------------------------------------------------------------------------

// Compiles operations in parallel, each for its compute capability or for `target`; results are in
// their order. If one fails, the others are still compiled.
GEMMERY_API std::vector<CompileResult> add_module(
    std::span<const GemmOperationUniversal> operations,
    std::optional<Target> target = std::nullopt);

// --- interleaved filters ------------------------------------------------------------------------

// The position to which PyCUTLASS's reorder_column moves column n of an interleaved operand.
// Operations here need no reordering; this is for callers whose operands are reordered already.
GEMMERY_API std::int64_t reordered_column(std::int64_t n) noexcept;

}  // namespace gemmery::describe
