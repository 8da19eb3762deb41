// SPDX-License-Identifier: Apache-2.0
#include "cli/report_chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace gemmery::cli {
namespace {

// Around the origin; each differs from the others without its colour.
constexpr std::array<std::string_view, mark_kinds> shapes{
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",  // circle
    "M-4.5,-4.5h9v9h-9z",                     // square
    "M0,-6L5.5,4.5H-5.5z",                    // triangle
    "M0,-6.5L6.5,0L0,6.5L-6.5,0z",            // diamond
    "M-2,-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",     // cross
    "M0,6L5.5,-4.5H-5.5z",                    // triangle, pointing down
};

Html shape(int kind) {
  return element("path", {{"d", std::string(shapes[static_cast<std::size_t>(kind % mark_kinds)])},
                          {"class", "mark " + colour_class(kind)}});
}

Html title(std::string_view words) { return element("title", text(words)); }

// 1, 2 and 5 times powers of ten.
std::vector<double> round_values(double low, double high, std::vector<double> digits) {
  std::vector<double> values;
  for (double power = std::floor(std::log10(low)); power <= std::ceil(std::log10(high)); ++power) {
    for (const double digit : digits) {
      const double value = digit * std::pow(10.0, power);
      if (value >= low * 0.999 && value <= high * 1.001) values.push_back(value);
    }
  }
  return values;
}

std::vector<double> even_values(double low, double high) {
  const double step = std::pow(10.0, std::floor(std::log10(high - low)));
  const double wide = (high - low) / step >= 4 ? step : step / 2;
  std::vector<double> values;
  for (double value = std::ceil(low / wide) * wide; value <= high + wide * 1e-6; value += wide)
    values.push_back(value);
  return values;
}

}  // namespace

Axis::Axis(Scale scale, double low, double high) : scale_(scale), low_(low), high_(high) {
  if (scale_ == Scale::logarithmic && high_ < low_ * 1.001) {
    low_ /= 2;
    high_ *= 2;
  }
  if (scale_ == Scale::linear && high_ <= low_) high_ = low_ + 1;
}

double Axis::position(double value) const {
  return scale_ == Scale::linear ? value : std::log(std::max(value, low_));
}

double Axis::percent(double value) const {
  const double begin = position(low_);
  const double share = (position(value) - begin) / (position(high_) - begin);
  return 100 * std::clamp(share, 0.0, 1.0);
}

std::vector<double> Axis::ticks() const {
  if (scale_ == Scale::linear) return even_values(low_, high_);
  std::vector<double> values = round_values(low_, high_, {1});
  if (values.size() < 3) values = round_values(low_, high_, {1, 2, 5});
  return values;
}

std::string percent_text(double percent) { return fmt::format("{:.2f}%", percent); }

Html picture(int height, std::string_view words, const Html& content) {
  return element("svg",
                 {{"class", "picture"},
                  {"role", "img"},
                  {"width", "100%"},
                  {"height", fmt::format("{}", height)},
                  {"aria-label", std::string(words)}},
                 content);
}

Html line(std::string_view style, double x1, double y1, double x2, double y2) {
  return element("line", {{"class", std::string(style)},
                          {"x1", percent_text(x1)},
                          {"y1", percent_text(y1)},
                          {"x2", percent_text(x2)},
                          {"y2", percent_text(y2)}});
}

Html mark(int kind, double x, double y, std::string_view words) {
  return element("svg", {{"x", percent_text(x)}, {"y", percent_text(y)}, {"overflow", "visible"}},
                 element("g", title(words) + shape(kind)));
}

Html mark_sample(int kind) {
  return element("svg",
                 {{"class", "sample"},
                  {"width", "14"},
                  {"height", "14"},
                  {"viewBox", "-7 -7 14 14"},
                  {"aria-hidden", "true"}},
                 shape(kind));
}

std::string colour_class(int kind) { return fmt::format("c{}", kind % mark_kinds); }

Html bar(const Bar& bar, std::string_view words) {
  const double width = std::max(bar.end - bar.begin, 0.2);
  Html content = title(words);
  content += element("rect", {{"class", "bar " + colour_class(bar.kind)},
                              {"x", percent_text(bar.begin)},
                              {"y", "3"},
                              {"width", percent_text(width)},
                              {"height", "12"}});
  content += element("line", {{"class", "whisker"},
                              {"x1", percent_text(bar.whisker_low)},
                              {"y1", "9"},
                              {"x2", percent_text(bar.whisker_high)},
                              {"y2", "9"}});
  return element("g", content);
}

}  // namespace gemmery::cli
