// SPDX-License-Identifier: Apache-2.0
// A kernel: code that runs problems. The object is a small value; names and metadata are built on
// demand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/device.hpp>
#include <gemmery/export.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>
#include <gemmery/stream.hpp>
#include <gemmery/target.hpp>

namespace gemmery {

class Family;
class Artifact;
class PreparedLaunch;

// The operand layouts that a kernel accepts.
enum class LayoutRule : std::uint8_t { row, column, any };
GEMMERY_API std::string_view name(LayoutRule rule) noexcept;

// The requirements of a kernel on one operand.
struct OperandRule {
  DType dtype = DType::float32;
  LayoutRule layout = LayoutRule::any;
  std::uint8_t alignment = 1;  // bytes that must divide the problem's alignment

  friend bool operator==(const OperandRule&, const OperandRule&) = default;
};

// The element type of a scale or a zero point for which a kernel is compiled; none by default.
class CompanionRule {
 public:
  constexpr CompanionRule() = default;
  constexpr CompanionRule(DType dtype, ScaleLayout layout) noexcept
      : bits_(static_cast<std::uint8_t>(1 + static_cast<int>(dtype) +
                                        (layout == ScaleLayout::swizzled_128x4 ? swizzled : 0))) {}

  constexpr bool is_used() const noexcept { return bits_ != 0; }
  constexpr DType dtype() const noexcept { return static_cast<DType>(bits_ % swizzled - 1); }
  constexpr ScaleLayout layout() const noexcept {
    return bits_ >= swizzled ? ScaleLayout::swizzled_128x4 : ScaleLayout::strided;
  }
  friend bool operator==(const CompanionRule&, const CompanionRule&) = default;

 private:
  static constexpr int swizzled = 128;
  std::uint8_t bits_ = 0;
};

// The scales and the zero point of an operand that a kernel reads in its main loop, whether its
// codes have a table, and whether it is prepared (ElementOrder::fragments). Blocks, strides and the
// table's numbers are parameters of a launch. Scales that do not vary along k are a part of the
// epilogue.
struct CompanionRules {
  std::array<CompanionRule, 2> scales{};
  CompanionRule zero_point{};
  bool has_table : 1 = false;
  bool is_prepared : 1 = false;

  constexpr bool are_used() const noexcept {
    return scales[0].is_used() || zero_point.is_used() || has_table || is_prepared;
  }
  friend bool operator==(const CompanionRules&, const CompanionRules&) = default;
};

// The programs of A and B that a kernel applies; default_epilogue where there is none. Interned for
// the life of the process, so that a kernel stays small.
struct OperandPrograms {
  EpilogueId a = default_epilogue, b = default_epilogue;

  friend bool operator==(const OperandPrograms&, const OperandPrograms&) = default;
};
enum class OperandProgramsId : std::uint32_t { none = 0 };
GEMMERY_API OperandProgramsId intern(const OperandPrograms& programs);
GEMMERY_API OperandPrograms programs_of(OperandProgramsId id) noexcept;

// The requirements of a kernel on a problem's operands.
struct OperandRules {
  OperandRule a, b, c, out;  // c is used only with has_c
  DType accumulator = DType::float32;
  Math math = Math::native;
  bool has_c = false;
  CompanionRules a_companions = {}, b_companions = {};
  OperandProgramsId programs = OperandProgramsId::none;

  friend bool operator==(const OperandRules&, const OperandRules&) = default;
};

// A family's own description of one of its designs: a trivially copyable struct of at most 24
// bytes, kept as bytes.
class DesignBytes {
 public:
  static constexpr std::size_t capacity = 24;

  template <class Design>
  static DesignBytes of(const Design& design) noexcept {
    static_assert(std::is_trivially_copyable_v<Design> && sizeof(Design) <= capacity);
    DesignBytes result;
    std::memcpy(result.bytes_.data(), &design, sizeof design);
    return result;
  }
  template <class Design>
  Design as() const noexcept {
    static_assert(std::is_trivially_copyable_v<Design> && sizeof(Design) <= capacity);
    Design design;
    std::memcpy(&design, bytes_.data(), sizeof design);
    return design;
  }
  friend bool operator==(const DesignBytes&, const DesignBytes&) = default;
  const std::array<std::byte, capacity>& bytes() const noexcept { return bytes_; }

 private:
  std::array<std::byte, capacity> bytes_{};
};

// One named choice of a design: {"tile", "128x128x16"}.
struct DesignField {
  std::string name;
  std::string value;
  friend bool operator==(const DesignField&, const DesignField&) = default;
};

// The description of a kernel, known before it is compiled.
struct GEMMERY_API Metadata {
  std::string kernel_name;   // stable, unique, versioned; `find_kernel` reads it back
  std::string kernel_class;  // the family: "simt"
  std::string provider;      // "templates"
  std::vector<Target> supported_targets;
  OperandRules operands;
  DType epilogue_compute_type = DType::float32;
  std::vector<DesignField> design;
  std::string epilogue;       // its text
  bool deterministic = true;  // equal inputs give equal bits

  // The value of a design field; empty if the family has no such field.
  GEMMERY_API std::string_view design_value(std::string_view field) const noexcept;
};

// The kernel's name, and a line each for its family, operands, design and epilogue.
GEMMERY_API std::string to_string(const Metadata& metadata);

// Scratch memory that the caller provides for one launch, on the operands' device; aligned to 256
// bytes.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// How to run. `stream` has no default: leaving it out does not compile.
struct RunOptions {
  const Artifact* artifact =
      nullptr;  // compiled earlier; null: use the process-wide store of compiled kernels
  Stream stream;
  Workspace workspace =
      {};  // default: stream-ordered memory from our pool, if the kernel needs any
  bool assume_supported = false;  // skip the check of `supports`; wrong use is undefined behaviour
  int max_multiprocessors = 0;    // limits persistent grids; 0 = all
};

// Resources of a kernel's code for one target, as the compiler reports them.
struct CodeResources {
  int registers = 0;
  int static_shared_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;
};

// Cheap to copy (64 bytes); valid for the life of the process. Equal kernels run the same source
// code.
class GEMMERY_API Kernel {
 public:
  Kernel(const Family& family, const OperandRules& operands, const DesignBytes& design,
         EpilogueId epilogue = default_epilogue) noexcept
      : family_(&family), design_(design), operands_(operands), epilogue_(epilogue) {}

  const Family& family() const noexcept { return *family_; }
  const OperandRules& operands() const noexcept { return operands_; }
  const DesignBytes& design() const noexcept { return design_; }
  EpilogueId epilogue() const noexcept { return epilogue_; }
  friend bool operator==(const Kernel&, const Kernel&) = default;

  std::string name() const;
  Metadata metadata() const;

  // Success if `run` can run these arguments, else the first reason why not.
  Status supports(const GemmArguments& arguments) const;

  // The same for a problem on a device that this machine need not have.
  Status supports(const GemmProblem& problem, const DeviceInfo& device) const;

  // Compiles for the device of the arguments, loads the code there and sets its attributes, so that
  // a later `run` may be captured into a graph. The same kernel is built only once, however many
  // threads compile it. Throws Error: unsupported with the text of `supports`, compile with
  // the compiler's log, unavailable without a compiler.
  Artifact compile(const GemmArguments& arguments) const;

  // Compiles for a named target; no device is needed. Throws like the other form.
  Artifact compile(Target target) const;

  // Bytes of scratch memory that `run` needs for these arguments.
  std::size_t get_workspace_size(const GemmArguments& arguments) const;

  // Enqueues the work on the stream and returns; nothing is synchronised. The current device and
  // context stay as they are. On the CPU the work is done when it returns. Throws Error:
  // unsupported with the text of `supports`, invalid_argument for a stream of another device or a
  // workspace that is too small, launch if the driver refuses the launch. During stream capture
  // only launches are allowed: a kernel that is not loaded, or needs a workspace that was
  // not passed, throws unsupported before any CUDA call, and the capture stays valid.
  void run(const GemmArguments& arguments, const RunOptions& options) const;

 private:
  const Family* family_;
  DesignBytes design_;
  OperandRules operands_;
  EpilogueId epilogue_;
};
static_assert(sizeof(Kernel) <= 64 && std::is_trivially_copyable_v<Kernel>);

// A kernel with its expected time on the queried problem.
struct RankedKernel : Kernel {
  RankedKernel(const Kernel& kernel, double microseconds) noexcept
      : Kernel(kernel), predicted_us(microseconds) {}

  double predicted_us;
  bool is_measured = false;  // from the history of this device, not from a model
};

// The state of an Artifact, implemented by the library. Immutable; any number of threads may use
// it.
class GEMMERY_API ArtifactState {
 public:
  virtual ~ArtifactState();
  virtual const Kernel& kernel() const noexcept = 0;
  virtual std::vector<Target> targets() const = 0;
  virtual std::string_view source() const noexcept = 0;
  virtual std::string_view log() const noexcept = 0;
  virtual double compile_ms() const noexcept = 0;
  virtual std::optional<CodeResources> resources() const = 0;
  virtual void load(Device device) const = 0;
  virtual void run(const GemmArguments& arguments, const RunOptions& options) const = 0;
  virtual PreparedLaunch bind(const GemmArguments& arguments,
                              std::size_t workspace_bytes) const = 0;
};

// The state of a PreparedLaunch.
class GEMMERY_API PreparedLaunchState {
 public:
  virtual ~PreparedLaunchState();
  virtual void set_data(std::string_view operand, const void* data) = 0;
  virtual void set_scalars(double alpha, double beta) = 0;
  virtual void set_scalar(std::string_view name, double value) = 0;
  virtual void launch(Stream stream) = 0;
};

// A launch with all parameters packed. Only one thread at a time may use it. It does not own the
// operands' memory.
class GEMMERY_API PreparedLaunch {
 public:
  explicit PreparedLaunch(std::unique_ptr<PreparedLaunchState> state) noexcept
      : state_(std::move(state)) {}

  // "A", "B", "C", "out" or a tensor of the epilogue. Throws Error (invalid_argument) if the
  // pointer does not fit the problem that the launch was bound for.
  void set_data(std::string_view operand, const void* data) { state_->set_data(operand, data); }
  void set_scalars(double alpha, double beta) { state_->set_scalars(alpha, beta); }
  // A number of the epilogue, by its name.
  void set_scalar(std::string_view name, double value) { state_->set_scalar(name, value); }

  // Enqueues the work on a stream of the operands' device; throws Error (launch, invalid_argument).
  void launch(Stream stream) { state_->launch(stream); }

  // Enqueues the work on the launch's own stream: the one that `bind` was given, or the calling
  // thread for operands on the CPU. Throws Error (invalid_argument) if it has none.
  void launch() { state_->launch(own_stream()); }

  // The stream of `launch()`; throws Error (invalid_argument) if the launch has none.
  Stream own_stream() const;

 private:
  friend class Artifact;

  std::unique_ptr<PreparedLaunchState> state_;
  std::optional<Stream> own_stream_;
};

// A compiled kernel. Shared and immutable; copies are cheap.
class GEMMERY_API Artifact {
 public:
  explicit Artifact(std::shared_ptr<const ArtifactState> state) noexcept
      : state_(std::move(state)) {}

  const Kernel& kernel() const noexcept { return state_->kernel(); }
  std::vector<Target> targets() const { return state_->targets(); }
  // The emitted source and the compiler's log; empty for kernels that were not compiled from
  // source.
  std::string_view source() const noexcept { return state_->source(); }
  std::string_view log() const noexcept { return state_->log(); }
  double compile_ms() const noexcept { return state_->compile_ms(); }
  std::optional<CodeResources> resources() const { return state_->resources(); }

  // Loads the code on a device and sets its attributes there; a later `run` on it may then be
  // captured. Throws Error: unsupported when no code of this artifact runs there, launch when the
  // driver refuses it.
  void load(Device device) const { state_->load(device); }

  // Packs a launch for these arguments; reserves the workspace that it needs.
  PreparedLaunch bind(const GemmArguments& arguments) const;
  // The same for a launch with a stream of its own, which `PreparedLaunch::launch()` uses. The
  // caller keeps the stream alive. Throws Error (invalid_argument) for a stream of another device.
  PreparedLaunch bind(const GemmArguments& arguments, Stream own) const;

  const ArtifactState& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<const ArtifactState> state_;
};

}  // namespace gemmery
