// SPDX-License-Identifier: Apache-2.0
// A stored result of tuning: the kernel that was the fastest of those that were timed for one
// problem, under the conditions of then. docs/tuning.md describes the file.
#pragma once

#include <string>
#include <vector>

#include <gemmery/export.hpp>

namespace gemmery {

// What a result depends on. It is used only where all four are the same.
struct TuningConditions {
  std::string device;    // "NVIDIA H200 (sm_90a, 132 SMs)", "AMD EPYC (cpu, 2 threads)"
  std::string driver;    // "CUDA 13.0"; on the CPU "oneDNN 2.6.3", or "no oneDNN"
  std::string compiler;  // "NVRTC 13.0"; on the CPU the one that compiled this library
  std::string gemmery;   // the library's version

  friend bool operator==(const TuningConditions&, const TuningConditions&) = default;
};

// What became of one kernel that might have won.
struct TunedCandidate {
  std::string kernel;
  double predicted_us = 0;  // infinite if nothing predicts it
  double time_us = 0;       // of a finalist the median, else the least when screened; 0: not timed
  std::string outcome;      // "winner", "7.3 % slower", "wrong: out[0, 0, 0] is 0, exactly 3, …"
};

struct TuningEntry {
  std::string problem;  // a line of the grammar, without alpha, beta and other numbers
  TuningConditions conditions;
  std::string kernel;    // the winner's name
  double median_us = 0;  // its time
  int rounds = 0;        // in which the finalists were timed in turn
  std::string tuned_at;  // "2026-11-27T04:02:31Z"
  // In the model's order. Not read back from the file, which has them for people.
  std::vector<TunedCandidate> candidates = {};
};

}  // namespace gemmery
