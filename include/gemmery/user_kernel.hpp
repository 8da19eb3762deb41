// SPDX-License-Identifier: Apache-2.0
// Bring your own kernel: CUDA C++ source, machine code or a callable, with its operand rules and
// launch configuration. A registered kernel is discovered, compiled, run and verified like
// any other. docs/own-kernels.md is the manual.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/device.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/export.hpp>
#include <gemmery/family.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/status.hpp>
#include <gemmery/stream.hpp>
#include <gemmery/target.hpp>

namespace gemmery {

// --- the code -----------------------------------------------------------------------------------

// CUDA C++, compiled when it is first needed. The disk cache keeps it, and artifact files can.
struct UserSource {
  // Contains extern "C" __global__ functions. It can include only headers that its options name.
  // Compiler warnings are errors, as for our own kernels.
  std::string text;
  // NVRTC options: "-DTILE=64", "-I/usr/local/cuda/include". With options that read files, such as
  // -I, it is compiled once in each process, since no key of the disk cache covers those files.
  std::vector<std::string> options = {};
};

// Code for one target: a cubin, PTX, or both. GPUs run the cubin or, if there is none, PTX that the
// driver compiles; emulated devices run PTX.
struct UserImage {
  Target target;
  std::vector<std::byte> cubin = {};
  std::string ptx = {};
};
using UserImages = std::vector<UserImage>;

// The arguments of one call of a callable.
struct UserCall {
  const GemmArguments& arguments;
  Stream stream;                // of the arguments' device; Stream::cpu() on the CPU
  Workspace workspace;          // of the size that the kernel requested; null if it requested none
  int max_multiprocessors = 0;  // 0 = all
};

// A callable: a library's function, another language's kernel. It has no code that
// could be saved.
struct UserCallable {
  // Enqueues the work on the stream and returns; on the CPU the work is complete when it returns.
  // Several threads may call it concurrently. Not called for an out without elements. `Kernel::run`
  // rethrows its exceptions as an Error (launch) that names the kernel, with the original nested in
  // it (std::rethrow_if_nested).
  std::function<void(const UserCall&)> run;
  // Called by `compile(args)`, `Artifact::load` and before the first run on a device, once for each
  // device unless it throws. Do here whatever must not happen in a captured stream.
  std::function<void(Device)> prepare = {};
  // True if it also takes operands on emulated devices, as a callable that launches kernels of this
  // library does. Their addresses mean nothing to CUDA.
  bool takes_emulated_devices = false;
};

// --- the launch ---------------------------------------------------------------------------------

// How the entry of source or image is launched. Everything is checked when the kernel is
// registered.
struct LaunchRecipe {
  std::string entry;  // its extern "C" __global__ function

  // The entry's parameters in order, one word each: WHAT[:TYPE] with a TYPE of i32, u32, i64, u64,
  // f32 or f64:
  //   A B C out NAME      address of the first element; NAME is a tensor of the epilogue
  //   m n k l             extents (i32); k is 0 if alpha is 0, since A and B are not read then
  //   A.row_stride        strides in elements, also .column_stride and .batch_stride (i64)
  //   A.leading           the row stride of row-major, the column stride of column-major (i64)
  //   alpha beta NUMBER   numbers of the default program, or of the epilogue by name (f32)
  //   =3.5                a constant (f32; an integer: i32)
  //   workspace           its address
  //   A.map=64x128/128    a tensor map (const __grid_constant__ CUtensorMap) of rows x columns of
  //                       the operand, swizzled by 0, 32, 64 or 128 bytes; sm_90 and later
  std::vector<std::string> parameters;

  // Blocks along x, y and z: factors joined by '*', each a number, an extent, `multiprocessors`
  // (those of the device, or the caller's limit), or one of them over a number, rounded up:
  // {"n/64", "m/64", "l"}, {"multiprocessors*2"}.
  std::array<std::string, 3> grid{"1", "1", "1"};
  // Replaces `grid` if that is not expressive enough; called for every launch.
  std::function<std::array<std::uint32_t, 3>(const GemmProblem&, const DeviceInfo&)> grid_function =
      {};

  std::array<std::uint32_t, 3> block{1, 1, 1};    // threads
  std::array<std::uint32_t, 3> cluster{1, 1, 1};  // blocks
  std::uint32_t shared_bytes = 0;                 // dynamic shared memory
  // Sets the workspace to zero on the stream before every launch.
  bool clears_workspace = false;
};

// --- the kernel ---------------------------------------------------------------------------------

// The kernel supports extents that are multiples of these.
struct ExtentMultiples {
  std::int64_t m = 1, n = 1, k = 1;
};

struct UserKernel {
  // A word of lower-case letters, digits and underscores that begins with a letter. The kernel is
  // named user_NAME_vVERSION_ and the types of its operands.
  std::string name;
  // Raise it with every visible change: artifact files of another version are refused.
  int version = 1;

  // Types, layouts and alignments. An alignment below the size of an element means that size.
  OperandRules operands;
  ExtentMultiples multiples = {};
  // The one program that it computes with its operands (docs/epilogues.md); without it, the default
  // one, D = alpha * accum + beta * C.
  std::optional<EpilogueRules> epilogue = std::nullopt;

  // For people and filters. A field {"instruction", "wgmma"} or {"instruction", "mma"} says that
  // tensor cores compute the accumulators, whose rounding `verify` then allows.
  std::vector<DesignField> design = {};
  // The targets on which it runs. Empty: sm_80 and later for source, those of the images, the CPU
  // for a callable.
  std::vector<Target> targets = {};
  bool deterministic = true;

  std::variant<UserSource, UserImages, UserCallable> code;
  LaunchRecipe launch = {};  // not of a callable

  // Scratch memory of one launch in bytes: a number, or factors as in LaunchRecipe::grid: "4*m*n".
  std::string workspace_bytes = "0";
  // In place of `workspace_bytes`.
  std::function<std::size_t(const GemmProblem&, const DeviceInfo&)> workspace_function = {};

  // Checks other conditions, after all declared rules have passed. If it throws, the
  // problem is refused, with the exception as the reason.
  std::function<Status(const Query&)> supports = {};
  // The predicted time in microseconds, by which discovery ranks the kernel. Without it, or if it
  // throws or returns an invalid time, the kernel ranks after all that have a prediction, with a
  // predicted_us of infinity; `explain` says so.
  std::function<double(const Query&)> predicted_us = {};
};

// Adds a kernel to discovery, under the provider "user"; every later call sees it. The functions in
// it may be called from any thread, at any time until the process ends.
//
// The parameters decide what is checked: without a stride of an operand, only packed operands are
// passed; without l in parameters and grid, one matrix only; without alpha (beta), only a value
// of 1. A layout of `any` needs both strides as parameters.
//
// Throws Error (invalid_argument) that names the kernel and the field: a name that is taken, a
// parameter or grid that does not parse, a missing operand, a block of more than 1024 threads,
// missing code; unsupported for what no device runs.
GEMMERY_API Kernel register_kernel(UserKernel kernel);

// Removes a registered kernel from discovery; its name may then be given to another.
// Existing kernels and artifacts stay valid, and running work is not disturbed. Throws Error
// (invalid_argument) for a kernel that was not registered by `register_kernel` or was withdrawn
// before.
GEMMERY_API void withdraw_kernel(const Kernel& kernel);

// Of the types that a library of kernels and the program exchange: equal where both were compiled
// with the same headers.
constexpr std::uint64_t header_layout() noexcept {
  std::uint64_t layout = 0xcbf29ce484222325;  // FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv
  for (const std::size_t size :
       {sizeof(UserKernel), sizeof(UserCall), sizeof(LaunchRecipe), sizeof(OperandRules),
        sizeof(Query), sizeof(GemmProblem), sizeof(GemmArguments), sizeof(EpilogueRules),
        sizeof(Kernel), sizeof(Tensor), sizeof(DeviceInfo), sizeof(Status), sizeof(Stream)})
    layout = (layout ^ size) * 0x100000001b3;
  return layout;
}

}  // namespace gemmery

// Define it in a shared library to bring your kernels to the command line: `gemmery list --load
// ./libmine.so` calls it once, and it calls register_kernel.
extern "C" GEMMERY_API void gemmery_register_kernels();

// Defined by these headers in every such library: the program refuses one that other headers
// describe instead of calling it.
extern "C" [[gnu::used]] GEMMERY_API inline std::uint64_t gemmery_header_layout() noexcept {
  return gemmery::header_layout();
}
