// SPDX-License-Identifier: Apache-2.0
#include "cli/report_parts.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "cli/quantities.hpp"
#include "cli/report_chart.hpp"

namespace gemmery::cli {
namespace {

using Scale = Axis::Scale;

// --- roofline -----------------------------------------------------------------------------------

constexpr int plot_height = 300;

struct Point {
  const BenchRow* row;
  double intensity;  // operations per byte
};

std::vector<Point> points_of(const BenchRecord& record) {
  std::vector<Point> points;
  for (const BenchRow& row : record.rows)
    if (row.bytes > 0 && row.flops() > 0) points.push_back({&row, row.flops() / row.bytes});
  return points;
}

double to_three_digits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

struct Ceilings {
  std::set<double> rates;  // operations per second: one for each type
  double bandwidth = 0;    // bytes per second
};

Ceilings ceilings_of(const BenchRecord& record) {
  Ceilings ceilings;
  for (const BenchRow& row : record.rows) {
    if (row.arithmetic_us > 0 && row.flops() > 0)
      ceilings.rates.insert(to_three_digits(row.flops() / row.arithmetic_us * 1e6));
    if (row.memory_us > 0) ceilings.bandwidth = row.bytes / row.memory_us * 1e6;
  }
  return ceilings;
}

struct Plane {
  Axis x;
  Axis y;
  double down(double rate) const { return 100 - y.percent(rate); }
};

Plane plane_of(const std::vector<Point>& points, const Ceilings& ceilings) {
  double left = points.front().intensity, right = left;
  double bottom = points.front().row->flops_per_second, top = bottom;
  for (const Point& point : points) {
    left = std::min(left, point.intensity);
    right = std::max(right, point.intensity);
    bottom = std::min(bottom, point.row->flops_per_second);
    top = std::max(top, point.row->flops_per_second);
  }
  if (!ceilings.rates.empty()) top = std::max(top, *ceilings.rates.rbegin());
  return {Axis(Scale::logarithmic, left / 2, right * 2),
          Axis(Scale::logarithmic, bottom / 2, top * 1.5)};
}

Html label(double x, double y, const char* dx, const char* dy, const char* anchor,
           const std::string& words) {
  return element("text",
                 {{"x", percent_text(x)},
                  {"y", percent_text(y)},
                  {"dx", dx},
                  {"dy", dy},
                  {"text-anchor", anchor}},
                 text(words));
}

Html plane_frame(const Plane& plane) {
  Html frame;
  for (const double tick : plane.x.ticks()) {
    const double x = plane.x.percent(tick);
    frame += line("grid", x, 0, x, 100);
    frame += label(x, 100, "0", "18", "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : plane.y.ticks()) {
    const double y = plane.down(tick);
    frame += line("grid", 0, y, 100, y);
    frame += label(0, y, "-6", "4", "end", rate_text(tick));
  }
  frame += line("axis", 0, 100, 100, 100) + line("axis", 0, 0, 0, 100);
  return frame + label(100, 100, "0", "36", "end", "operations per byte");
}

Html draw_ceilings(const Plane& plane, const Ceilings& ceilings) {
  Html lines;
  for (const double rate : ceilings.rates) {
    const double ridge = ceilings.bandwidth > 0 ? rate / ceilings.bandwidth : plane.x.low();
    lines += line("roof", plane.x.percent(ridge), plane.down(rate), 100, plane.down(rate));
    lines += label(100, plane.down(rate), "-4", "-5", "end", "peak " + rate_text(rate));
  }
  if (ceilings.bandwidth <= 0) return lines;
  const double most = ceilings.rates.empty() ? plane.y.high() : *ceilings.rates.rbegin();
  const double begin = std::max(plane.x.low(), plane.y.low() / ceilings.bandwidth);
  const double end = std::min(plane.x.high(), most / ceilings.bandwidth);
  if (begin >= end) return lines;  // memory bounds nothing that is shown
  lines += line("roof", plane.x.percent(begin), plane.down(begin * ceilings.bandwidth),
                plane.x.percent(end), plane.down(end * ceilings.bandwidth));
  return lines + label(plane.x.percent(begin), plane.down(begin * ceilings.bandwidth), "6", "14",
                       "start", size_text(static_cast<std::int64_t>(ceilings.bandwidth)) + "/s");
}

std::string words_of_point(const BenchRow& row) {
  return fmt::format("{}: {}, {}, {}", row.problem, row.kernel, time_text(row.median_us),
                     rate_text(row.flops_per_second));
}

}  // namespace

Html roofline(const BenchRecord& record, const KernelClasses& classes) {
  const std::vector<Point> points = points_of(record);
  if (points.empty()) return element("p", text("The record has no bytes, by which it is drawn."));
  const Ceilings ceilings = ceilings_of(record);
  const Plane plane = plane_of(points, ceilings);
  Html content = plane_frame(plane) + draw_ceilings(plane, ceilings);
  for (const Point& point : points)
    content += mark(classes.kind_of(*point.row), plane.x.percent(point.intensity),
                    plane.down(point.row->flops_per_second), words_of_point(*point.row));
  const Html plot = picture(
      plot_height, "Rates over operations per byte; the table below has the numbers", content);
  return classes.legend() + element("div", {{"class", "plot"}}, plot);
}

// --- classes ------------------------------------------------------------------------------------

void KernelClasses::add(const BenchRecord& record) {
  for (const BenchRow& row : record.rows)
    if (std::ranges::find(names_, row.kernel_class) == names_.end())
      names_.push_back(row.kernel_class);
}

int KernelClasses::kind_of(const BenchRow& row) const {
  return static_cast<int>(std::ranges::find(names_, row.kernel_class) - names_.begin());
}

Html KernelClasses::legend() const {
  Html items;
  for (std::size_t index = 0; index < names_.size(); ++index)
    items += element("li", mark_sample(static_cast<int>(index)) + text(names_[index]));
  return element("ul", {{"class", "legend"}}, items);
}

// --- rows ---------------------------------------------------------------------------------------

Html labelled_row(const std::string& name, const std::string& value, const Html& picture) {
  return element("div", {{"class", "row"}},
                 element("div", {{"class", "name"}}, text(name)) +
                     element("div", {{"class", "value"}}, text(value)) + picture);
}

namespace {

constexpr double strip_low = 0.8;
constexpr double strip_high = 1.4;

Html dot(int kind, double x) {
  return element(
      "circle",
      {{"class", "dot " + colour_class(kind)}, {"cx", percent_text(x)}, {"cy", "8"}, {"r", "2.5"}});
}

Html track(int height) {
  return element(
      "rect",
      {{"class", "track"}, {"width", "100%"}, {"height", std::to_string(height)}, {"rx", "3"}});
}

}  // namespace

std::string strip_words() {
  return fmt::format(
      "Each dot is a sample, from {} of the median at the left edge to {} at the right, where what "
      "took longer lies, too. The box holds the middle half.",
      strip_low, strip_high);
}

Html sample_strip(const BenchRow& row, const KernelClasses& classes) {
  if (row.samples_us.empty() || row.median_us <= 0) return {};
  const Axis axis(Scale::linear, strip_low, strip_high);
  Html content = track(16);
  for (const double sample : row.samples_us)
    content += dot(classes.kind_of(row), axis.percent(sample / row.median_us));
  const double low = axis.percent(row.quartile_low_us / row.median_us);
  const double high = axis.percent(row.quartile_high_us / row.median_us);
  content += element("rect", {{"class", "box"},
                              {"x", percent_text(low)},
                              {"y", "2"},
                              {"width", percent_text(std::max(high - low, 0.3))},
                              {"height", "12"}});
  const auto [least, most] = std::ranges::minmax(row.samples_us);
  return picture(16,
                 fmt::format("{} samples from {} to {}, half of them from {} to {}",
                             row.samples_us.size(), time_text(least), time_text(most),
                             time_text(row.quartile_low_us), time_text(row.quartile_high_us)),
                 content);
}

std::string ratio_text(double ratio) { return fmt::format("{:.3g}", ratio); }

Html ratio_bars(const std::vector<RatioBar>& bars) {
  double least = 0.5, greatest = 2;
  for (const RatioBar& bar : bars) {
    least = std::min(least, bar.ratio / 1.1);
    greatest = std::max(greatest, bar.ratio * 1.1);
  }
  const Axis axis(Scale::logarithmic, least, greatest);
  const double one = axis.percent(1);
  Html rows;
  for (const RatioBar& ratio : bars) {
    const double at = axis.percent(ratio.ratio);
    Html content = track(18);
    content += bar({.kind = ratio.kind,
                    .begin = std::min(one, at),
                    .end = std::max(one, at),
                    .whisker_low = axis.percent(ratio.least),
                    .whisker_high = axis.percent(ratio.greatest)},
                   ratio.name);
    content += line("one", one, 0, one, 100);
    const std::string words = fmt::format("{}, from {} to {} by quartiles", ratio_text(ratio.ratio),
                                          ratio_text(ratio.least), ratio_text(ratio.greatest));
    rows += labelled_row(ratio.name, ratio_text(ratio.ratio),
                         picture(18, ratio.name + ": " + words, content));
  }
  return rows;
}

}  // namespace gemmery::cli
