// SPDX-License-Identifier: Apache-2.0
// Runs a program with our CUDA libraries before the system's, and reads what they record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gemmery/emulate.hpp>

namespace gemmery::cli {

struct EmulatedProcess {
  std::vector<std::string> words;  // the program and its arguments
  std::string devices;             // "h200,h200"
  std::uint64_t seed = 1;
  double timeout_s = 0;            // 0: none
  bool keeps_output_free = false;  // what it writes to standard output goes to standard error
};

struct EmulatedProcessResult {
  int exit_code = 0;  // 128 + the signal that ended it
  bool timed_out = false;
  int signal = 0;  // that ended it; findings are known then, but not how often they occurred
  int interrupted_by = 0;  // the signal to this process, which was passed on
  std::uint64_t launches = 0;
  std::uint64_t warp_instructions = 0, lane_instructions = 0;
  // One for each place, with the key of the place in the same order.
  std::vector<EmulationFinding> findings;
  std::vector<std::string> places;
  std::vector<std::string> refusals;  // what the libraries lack and the program asked for
};

// Throws Error: unavailable if the libraries are not beside the program `gemmery`, or if the
// program cannot be started.
EmulatedProcessResult run_emulated(const EmulatedProcess& process);

// True if the word names a program that the system can start, by its path or in PATH.
bool is_program(const std::string& word);

}  // namespace gemmery::cli
