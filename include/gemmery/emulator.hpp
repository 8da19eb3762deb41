// SPDX-License-Identifier: Apache-2.0
// For kernel writers without a GPU: runs a kernel's PTX on the CPU, unchanged, and checks every
// access. Buffer and copy provide memory on an emulated device, as on any other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gemmery/device.hpp>
#include <gemmery/dtype.hpp>
#include <gemmery/error.hpp>
#include <gemmery/export.hpp>

namespace gemmery {

// --- faults -------------------------------------------------------------------------------------

// A fault of a kernel and its place. Unknown fields keep their defaults.
struct EmulatorFaultDetails {
  std::string kind;    // "race", "out of bounds", "deadlock", ...
  std::string report;  // all of it, to be printed: what, where, the other side, the seed
  std::string kernel;
  std::array<std::uint32_t, 3> block{};  // its index in the grid
  int warp = -1;
  int lane = -1;
  std::uint32_t ptx_line = 0;  // the first is 1
  std::string source_file;
  std::uint32_t source_line = 0;
};

// Thrown by `EmulatedModule::launch`; what() is the report. Memory is as the kernel left it, and
// the device remains usable.
class GEMMERY_API EmulatorFault : public Error {
 public:
  explicit EmulatorFault(EmulatorFaultDetails details);
  const EmulatorFaultDetails& fault() const noexcept { return fault_; }

 private:
  EmulatorFaultDetails fault_;
};

// --- launches -----------------------------------------------------------------------------------

struct EmulatedLaunch {
  std::array<std::uint32_t, 3> grid{1, 1, 1};     // blocks
  std::array<std::uint32_t, 3> block{1, 1, 1};    // threads
  std::array<std::uint32_t, 3> cluster{1, 1, 1};  // blocks; the grid is a multiple of it
  std::uint32_t shared_bytes = 0;                 // dynamic
  // As cudaLaunchCooperativeKernel: the grid has a barrier (cooperative_groups::grid_group::sync),
  // and the device must hold all its blocks at a time. `emulate` sets it for kernels that use that
  // barrier.
  bool is_cooperative = false;
  std::uint64_t seed = 1;  // of the schedule: which warp runs next, how late copies are
  // The number of warp instructions of a cluster after which the kernel counts as stuck; 0: 2^28.
  std::uint64_t step_limit = 0;
};

// The outcome of a launch.
struct EmulatedRun {
  std::uint64_t warp_instructions = 0;
  std::uint64_t lane_instructions = 0;  // active lanes counted
};

// One value that a kernel takes: `bytes` bytes at `data`.
struct EmulatedParameter {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

// A module on an emulated device.
//
//     const Device device = *parse_device("emulated:h200");
//     const OwnedStream stream(device);
//     const Buffer numbers(4 * count, stream);
//     const EmulatedModule module = EmulatedModule::compile(source, device);
//     module.launch("scale", {.grid = {8, 1, 1}, .block = {256, 1, 1}}, numbers.data(), count,
//                   0.5F);
class GEMMERY_API EmulatedModule {
 public:
  // Takes PTX text. Throws Error: invalid_argument if it is not PTX or the device is not emulated,
  // unsupported if the device cannot run the code.
  static EmulatedModule load(std::string_view ptx, Device device);

  // CUDA C++, compiled by NVRTC for the device, with the lines of the source; options as NVRTC
  // takes them ("-I/usr/local/cuda/include", "-DTILE=64"). Throws Error: compile with the
  // compiler's log, unavailable without NVRTC.
  static EmulatedModule compile(const std::string& source, Device device,
                                std::vector<std::string> options = {});

  ~EmulatedModule();
  EmulatedModule(EmulatedModule&&) noexcept;
  EmulatedModule& operator=(EmulatedModule&&) noexcept;

  const std::string& ptx() const noexcept;
  std::vector<std::string> entries() const;  // its kernels, as they are named in the PTX

  // Runs a kernel to completion, in this thread. Throws EmulatorFault for a fault of the kernel,
  // and Error: invalid_argument for an entry that does not exist or parameters that differ from the
  // kernel's in number or size, unsupported for an instruction that the emulator does not know.
  EmulatedRun launch(std::string_view entry, const EmulatedLaunch& shape,
                     std::span<const EmulatedParameter> parameters) const;

  // The same with the values themselves: pointers, numbers, structs or encoded tensor maps, each of
  // the kernel's own type.
  template <class... Values>
  EmulatedRun launch(std::string_view entry, const EmulatedLaunch& shape,
                     const Values&... values) const
      requires(std::is_trivially_copyable_v<Values>&&...) {
    const std::array<EmulatedParameter, sizeof...(Values)> parameters{
        EmulatedParameter{&values, sizeof values}...};
    return launch(entry, shape, std::span<const EmulatedParameter>(parameters));
  }

 private:
  struct Insides;
  explicit EmulatedModule(std::unique_ptr<Insides> insides);
  std::unique_ptr<Insides> insides_;
};

// --- tensor maps --------------------------------------------------------------------------------

// A tiled view of memory, fastest dimension first, by the rules of cuTensorMapEncodeTiled.
struct TensorMapView {
  const void* address = nullptr;
  DType dtype = DType::float32;
  std::uint32_t rank = 2;
  std::array<std::uint64_t, 5> extents{};       // elements
  std::array<std::uint64_t, 4> byte_strides{};  // of dimension 1 and up
  std::array<std::uint32_t, 5> box{};           // elements
  std::array<std::uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  int swizzle_bytes = 0;  // 0, 32, 64 or 128
};

// The argument for a parameter `const __grid_constant__ CUtensorMap`.
struct alignas(64) EncodedTensorMap {
  std::array<std::uint64_t, 16> words{};
};

// For emulated devices only. Throws Error (invalid_argument) naming the rule that is broken.
GEMMERY_API EncodedTensorMap encode_emulated_tensor_map(const TensorMapView& view);

// --- ending launches early ----------------------------------------------------------------------

// Ends the launches that this thread makes on emulated devices within the scope once `stop` is
// requested. They fail with Error (launch), leave memory as it is at that time, and the device
// remains usable. Compilations within the scope are cancelled, too.
class GEMMERY_API EmulatorStopScope {
 public:
  explicit EmulatorStopScope(std::stop_token stop);
  ~EmulatorStopScope();
  EmulatorStopScope(const EmulatorStopScope&) = delete;
  EmulatorStopScope& operator=(const EmulatorStopScope&) = delete;

 private:
  std::stop_token outer_;
};

// --- all emulated devices -----------------------------------------------------------------------

// The seed of launches that name none, which are those of kernels run through Kernel and Artifact.
// The default is GEMMERY_EMULATOR_SEED, else 1.
GEMMERY_API void set_emulator_seed(std::uint64_t seed) noexcept;

// Counts since the process began.
struct EmulatorStatistics {
  std::uint64_t launches = 0;
  std::uint64_t warp_instructions = 0;
  std::uint64_t lane_instructions = 0;
  // Bytes that were copied to the host without ever having been written. Most likely a kernel did
  // not write part of its output.
  std::uint64_t unwritten_bytes_copied = 0;
};
// Throws Error (invalid_argument) for a device that is not emulated.
GEMMERY_API EmulatorStatistics emulator_statistics(Device device);

}  // namespace gemmery
