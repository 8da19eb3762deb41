// SPDX-License-Identifier: Apache-2.0
// Parts of reports that are made of rows of a record.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_record.hpp"
#include "cli/html.hpp"

namespace gemmery::cli {

// The classes of kernels in the order in which they occur: the place of a class is the kind of its
// marks.
class KernelClasses {
 public:
  void add(const BenchRecord& record);
  int kind_of(const BenchRow& row) const;
  Html legend() const;

 private:
  std::vector<std::string> names_;
};

// Rates over arithmetic intensity, below the ceilings of arithmetic and of memory traffic.
Html roofline(const BenchRecord& record, const KernelClasses& classes);

// A name and a value over a picture of the page's width.
Html labelled_row(const std::string& name, const std::string& value, const Html& picture);

// Each sample as a dot at its ratio to the median, with a box between the quartiles.
Html sample_strip(const BenchRow& row, const KernelClasses& classes);
// What the ends of strips mean.
std::string strip_words();

// A ratio as a bar that begins at 1.
struct RatioBar {
  std::string name;
  int kind;
  double ratio;
  double least;
  double greatest;
};
Html ratio_bars(const std::vector<RatioBar>& bars);

std::string ratio_text(double ratio);  // "1.52"

}  // namespace gemmery::cli
