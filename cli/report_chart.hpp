// SPDX-License-Identifier: Apache-2.0
// Parts of charts as inline SVG. Positions along an axis are percentages, so that a chart follows
// the width of the page while its text keeps its size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/html.hpp"

namespace gemmery::cli {

// An axis with a logarithmic or a linear scale.
class Axis {
 public:
  enum class Scale : bool { linear, logarithmic };

  // Linear scales begin at `low`; logarithmic ones need positive ends. Equal ends are widened.
  Axis(Scale scale, double low, double high);

  // From 0 to 100; values beyond the ends are put on them.
  double percent(double value) const;
  // Round values between the ends: powers of ten, with 2 and 5 if those are few.
  std::vector<double> ticks() const;
  double low() const noexcept { return low_; }
  double high() const noexcept { return high_; }

 private:
  double position(double value) const;

  Scale scale_;
  double low_;
  double high_;
};

std::string percent_text(double percent);  // "12.5%"

// A picture of this height and the page's width, with its content in words for those who do not
// see it.
Html picture(int height, std::string_view words, const Html& content);

Html line(std::string_view style, double x1, double y1, double x2, double y2);  // in percent

// One of a few kinds of marks that differ in shape and in colour; `words` are shown on pointing at
// it.
inline constexpr int mark_kinds = 6;
Html mark(int kind, double x, double y, std::string_view words);
// The mark alone, for legends.
Html mark_sample(int kind);

// "c0" to "c5", the colours of marks.
std::string colour_class(int kind);

// A horizontal bar from 0 % to `end` with a whisker between the quartiles.
struct Bar {
  int kind;
  double begin;
  double end;
  double whisker_low;
  double whisker_high;
};
Html bar(const Bar& bar, std::string_view words);

}  // namespace gemmery::cli
