// SPDX-License-Identifier: Apache-2.0
// Tuning: times the kernels that the model ranks first for a problem, verifies them, and stores
// the fastest one in a file. Discovery then ranks it first, in every process. docs/tuning.md is the
// manual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/discovery.hpp>
#include <gemmery/export.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/tuning_entry.hpp>

namespace gemmery {

// What tuning is doing, told between two steps.
struct TuneProgress {
  std::string_view stage;   // "waiting", "screening", "verifying" or "timing"
  std::string_view kernel;  // of this step; empty if it concerns several
  double share = 0;         // of the budget that is spent, from 0 to 1
};

struct TuneOptions {
  Device device = Device::cpu();
  // Seconds for the problem. A step that was begun is completed.
  double budget_s = 30;
  // The most kernels that are timed, the first by the model; 0: all. Up to four of a vendor's
  // library are timed beside them.
  int candidates = 12;
  // Also where a result that holds is stored.
  bool measures_again = false;
  // Restricts the candidates. The result is stored for the problem all the same.
  Filter filter = {};
  std::uint64_t seed = 0;  // of the operands; 0 = fresh
  // Called between steps; what it throws ends tuning, and nothing is stored.
  std::function<void(const TuneProgress&)> progress = {};
};

enum class TuneOutcome : std::uint8_t {
  stored,         // a winner was found, and is stored
  stored_before,  // one that holds was stored already; nothing was timed
  undecided,      // the budget was spent too early; nothing is stored
  none_passed,    // no candidate ran and passed verification; nothing is stored
};
GEMMERY_API std::string_view name(TuneOutcome outcome) noexcept;

struct TuneResult {
  TuneOutcome outcome = TuneOutcome::undecided;
  // The winner, if there is one, and what became of the candidates (unknown if stored before).
  TuningEntry entry;
};

// Finds the fastest kernel of a problem in two stages. Each candidate is first timed briefly. Those
// that come close to the fastest one, four at most, are verified and then timed in turn, round by
// round, until it is clear which are slower by more than 2 percent, or the budget is spent. The
// winner is the first by the model among those that are not shown to be slower.
//
// Two processes do not time at once on one file; the second one waits. Throws Error: unsupported
// with the reasons if no kernel fits the problem, or for an emulated device; unavailable if there
// is no place for the file; io if it cannot be written; invalid_argument for a budget that is not
// positive.
GEMMERY_API TuneResult tune(const ProblemLine& line, const TuneOptions& options = {});

// The file of results: GEMMERY_TUNING_FILE, else tuning.toml in the folder of the cache. It may not
// exist yet. Throws Error (unavailable) if there is no place for it.
GEMMERY_API std::string tuning_file();

struct StoredTuning : TuningEntry {
  // True if device, driver, compiler and version are those of a device of this process.
  bool holds_here = false;
};

// The results in the file, in the order in which they were stored; only the last one of equal
// problem and conditions. Throws Error: unavailable if there is no place for the file, io if it is
// not used because others may write to it.
GEMMERY_API std::vector<StoredTuning> list_tunings();

// Removes the results of these problems, under any conditions; returns how many. Throws Error (io).
GEMMERY_API std::size_t forget_tunings(std::span<const GemmProblem> problems);
// Removes all.
GEMMERY_API std::size_t forget_all_tunings();

}  // namespace gemmery
