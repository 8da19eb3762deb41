// SPDX-License-Identifier: Apache-2.0
// One kernel, one call, no GPU: compiles it, runs it on an emulated device under several schedules,
// and reports what is wrong with it. `gemmery emulate` and Python's `gemmery.emulate` are this
// call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/device.hpp>
#include <gemmery/emulator.hpp>
#include <gemmery/export.hpp>

namespace gemmery {

// One parameter of the kernel: a number, the bytes of a value, or a buffer on the device, whose
// address or tensor map the kernel gets and whose contents are a result.
struct GEMMERY_API EmulationArgument {
  enum class Kind : std::uint8_t { number, value, buffer, tensor_map };

  // "3", "-1", "0x10", "1.5", "1.5f", converted to the type that the kernel's PTX declares; for
  // types that PTX does not tell apart (half and other structs) with the type: "1.5:f16".
  static EmulationArgument number(std::string text);
  static EmulationArgument value(std::vector<std::byte> bytes);   // in the parameter's own type
  static EmulationArgument buffer(std::vector<std::byte> bytes);  // with these contents
  static EmulationArgument unwritten(std::size_t bytes);  // a buffer with unwritten contents
  // A buffer for a parameter `const __grid_constant__ CUtensorMap`: an array of `shape` in C order,
  // copied in boxes of `box` elements, both slowest dimension first; swizzle_bytes: 0, 32, 64, 128.
  // Throws Error (invalid_argument) for a shape of other bytes than the buffer's, or a box of
  // another rank. The rules of cuTensorMapEncodeTiled are checked at the launch.
  static EmulationArgument tensor_map(EmulationArgument buffer, DType dtype,
                                      std::span<const std::uint64_t> shape,
                                      std::span<const std::uint32_t> box, int swizzle_bytes = 0);

  bool has_buffer() const noexcept { return kind == Kind::buffer || kind == Kind::tensor_map; }

  Kind kind = Kind::number;
  std::string text = {};
  std::vector<std::byte> bytes = {};
  bool is_written = true;
  TensorMapView view = {};  // of a tensor map; its address is that of the buffer
};

// A block whose steps are reported, and one of its warps; -1: all.
struct EmulatedTrace {
  std::array<std::uint32_t, 3> block{};
  int warp = -1;
  std::size_t most_steps = 10'000;
};

struct EmulationRequest {
  std::string code;                          // CUDA C++, or PTX, which begins with `.version`
  std::string file = "kernel.cu";            // its name in findings and in the compiler's log
  std::vector<std::string> compile_options;  // as NVRTC takes them
  // The kernel, by its name in the source ("sum", "sum<float>") or in the PTX ("_Z3sumPf"). Empty:
  // the only one there is.
  std::string entry;
  Device device;                             // an emulated one
  EmulatedLaunch launch;                     // launch.seed: that of the first schedule
  std::vector<EmulationArgument> arguments;  // in the order of the kernel's parameters
  int schedules = 8;                         // of seeds launch.seed, launch.seed + 1, ...
  bool stops_at_first = false;               // at the first fault, as EmulatedModule::launch does
  double timeout_s = 0;                      // of all schedules together; 0: none
  std::uint32_t sampled_clusters = 0;        // run this many clusters (blocks) only; 0: all
  bool wants_coverage = false;
  std::optional<EmulatedTrace> trace = {};  // in the first schedule
  // Rules for findings that are known, one a line: KIND[, FILE[:LINE][, KERNEL]]; the words may
  // contain * and ?, and # begins a comment. A source may have rules of its own in comments,
  // `// gemmery: allow KIND`. docs/emulator.md explains them.
  std::string rules;
  std::string rules_file = "rules";  // for errors
};

// A place in the kernel, and the block and threads that were there. Unknown fields keep their
// defaults.
struct EmulatedPlace {
  std::string kernel = {};  // as in the source
  std::array<std::uint32_t, 3> block{};
  int warp = -1;
  int lane = -1;
  std::uint32_t ptx_line = 0;  // the first is 1
  std::string ptx_text = {};
  std::string source_file = {};
  std::uint32_t source_line = 0;
  // Where the outermost function that was inlined there is called: a line of the kernel itself.
  std::string call_file = {};
  std::uint32_t call_line = 0;
};

// A fault at one place, under one or more schedules.
struct EmulationFinding {
  std::string kind = {};     // "race", "out of bounds", …; "results differ" of schedules
  std::string message = {};  // what is wrong, and what to do
  EmulatedPlace place = {};
  EmulatedPlace other = {};  // the other access of a race; ptx_line 0: none
  std::string report = {};   // all of it, for people
  // The memory model requires an order that is missing, but in this run no other result was
  // possible: both sides stored the same value, for example. False: a wrong result is possible.
  bool is_by_the_letter = false;
  bool ended_block = false;  // the block could not continue (a deadlock, a trap)
  std::uint64_t count = 0;   // instances in all schedules, one per instruction of a warp
  std::vector<std::uint64_t> seeds = {};  // of the schedules that have it
  std::string rule = {};                  // that suppresses it; empty: none does
};

// A buffer argument after the first schedule.
struct EmulationOutput {
  std::size_t argument = 0;
  std::vector<std::byte> bytes = {};
  std::uint64_t unwritten_bytes = 0;  // never written
};

struct EmulatedLine {
  std::uint32_t ptx_line = 0;
  std::string ptx_text = {};
  std::string source_file = {};
  std::uint32_t source_line = 0;
  bool has_run = false;  // for at least one lane
};

// An instruction that lanes of one warp executed together.
struct EmulatedStep {
  EmulatedPlace place = {};  // its lane: the first of them
  std::uint32_t lanes = 0;   // a bit each
  std::string result = {};   // "%f12 = 1.5", the first register that it wrote, of the first lane
};

struct EmulationReport {
  std::string kernel = {};                 // as in the source
  std::vector<EmulationFinding> findings;  // in the order in which the first schedule meets them
  std::vector<EmulationOutput> outputs;    // of the buffers, in the order of the arguments
  int schedules = 0;                       // that ended
  bool timed_out = false;
  std::uint64_t warp_instructions = 0;
  std::uint64_t lane_instructions = 0;
  std::vector<EmulatedLine> coverage;     // a row for each instruction, if wanted
  std::vector<EmulatedStep> trace;        // in the order in which they ran
  std::vector<std::string> unused_rules;  // that matched no finding

  // True if every finding is suppressed or by the letter of the model, and nothing timed out.
  GEMMERY_API bool passed() const noexcept;
};

// The finding with its count and seeds, on several lines.
GEMMERY_API std::string to_string(const EmulationFinding& finding);
// All findings, and a summary line.
GEMMERY_API std::string to_string(const EmulationReport& report);

// Applies rules as those of EmulationRequest to the report's findings, and notes the rules that
// match none. Throws Error (invalid_argument), which names file and line, for a line that is no
// rule.
GEMMERY_API void suppress_findings(EmulationReport& report, std::string_view rules,
                                   const std::string& rules_file);

// Runs the kernel under every schedule, each from the same contents of the buffers, and compares
// the results. A fault does not end a launch: a racing access takes effect as it comes, a load out
// of bounds returns zeros that count as unwritten, a store out of bounds does nothing. Faults after
// which a block cannot continue (deadlock, trap, misuse of a barrier) end the block, and the launch
// if its blocks communicate.
//
// Throws Error: invalid_argument for code, an entry, arguments, rules or a shape that are not
// valid, compile with the compiler's log, unsupported for an instruction that the emulator does not
// know, unavailable without NVRTC.
GEMMERY_API EmulationReport emulate(const EmulationRequest& request);

}  // namespace gemmery
