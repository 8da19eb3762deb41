// SPDX-License-Identifier: Apache-2.0
// Convolutions to test with: awkward geometries as text, and random ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/naive_convolution.hpp"

namespace gemmery::tests {

inline constexpr std::array kinds{ConvKind::fprop, ConvKind::dgrad, ConvKind::wgrad};

inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

inline Extents numbers(std::string_view text) {
  Extents list;
  for (const std::string& part : split(text, ',')) list.push_back(std::stoll(part));
  return list;
}

inline Extents for_each_of(std::size_t dimensions, const Extents& list) {
  return list.size() == 1 ? Extents(dimensions, list[0]) : list;
}

// N,H,W,C,K,R,S|padding (one, or h lower,h upper,w lower,w upper)|stride[|d dilation][|g
// groups]>P,Q; or in three dimensions N,D,H,W,C,K,T,R,S|...>O,P,Q.
struct Row {
  ConvCase conv;
  Extents expected;
};
inline Row read_row(std::string_view text) {
  const std::size_t arrow = text.find('>');
  const auto fields = split(text.substr(0, arrow), '|');
  const Extents shape = numbers(fields[0]);
  const std::size_t dimensions = (shape.size() - 3) / 2;
  const Extents padding = numbers(fields[1]);
  const auto spatial = [&](std::size_t first) {
    const auto begin = shape.begin() + static_cast<std::ptrdiff_t>(first);
    return Extents(begin, begin + static_cast<std::ptrdiff_t>(dimensions));
  };
  Row row{.conv = {.images = shape[0],
                   .image = spatial(1),
                   .channels = shape[dimensions + 1],
                   .filters = shape[dimensions + 2],
                   .filter = spatial(dimensions + 3),
                   .lower = {},
                   .upper = {},
                   .stride = for_each_of(dimensions, numbers(fields[2])),
                   .dilation = Extents(dimensions, 1)},
          .expected = numbers(text.substr(arrow + 1))};
  for (std::size_t d = 0; d < dimensions; ++d) {
    row.conv.lower.push_back(padding[padding.size() == 1 ? 0 : 2 * d]);
    row.conv.upper.push_back(padding[padding.size() == 1 ? 0 : 2 * d + 1]);
  }
  for (std::size_t i = 3; i < fields.size(); ++i) {
    const Extents list = numbers(std::string_view(fields[i]).substr(1));
    if (fields[i][0] == 'd') row.conv.dilation = for_each_of(dimensions, list);
    if (fields[i][0] == 'g') row.conv.groups = list[0];
  }
  return row;
}

inline constexpr const char* tiny_convolutions[] = {
    "1,1,1,1,1,1,1|0|1>1,1",       "1,1,1,8,8,3,3|1|1>1,1",         "2,3,3,16,16,7,7|3|1>3,3",
    "1,2,2,8,24,5,5|2|1>2,2",      "3,1,17,8,8,1,5|0,0,2,2|1>1,17", "3,17,1,8,8,5,1|2,2,0,0|1>17,1",
    "4,7,7,64,48,7,7|0|1>1,1",     "4,8,8,64,40,8,8|0|8>1,1",       "2,9,9,32,32,3,3|0|1|d4>1,1",
    "2,9,10,32,32,3,3|0|2|d4>1,1", "1,4,4,16,16,3,3|5|1>12,12"};
inline constexpr const char* strided_convolutions[] = {"1,11,7,64,8,1,1|0|2>6,4",
                                                       "2,14,14,64,128,1,1|0|2>7,7",
                                                       "1,12,13,24,40,1,1|0|3,5>4,3",
                                                       "2,16,16,16,16,2,2|0|3>5,5",
                                                       "1,15,14,16,16,3,3|1|2>8,7",
                                                       "1,14,15,16,16,3,3|0,1,0,1|2>7,7",
                                                       "1,32,32,16,32,3,3|1|6,2>6,16",
                                                       "3,16,16,64,256,2,5|1,0,0,1|2,4|d4,2>7,3",
                                                       "3,16,16,64,256,2,5|1,0,0,1|4,2|d2,4>4,1",
                                                       "3,16,16,64,256,2,5|1,0,0,1|3,2|d2,3>5,3",
                                                       "1,20,20,8,8,3,3|2|4|d6>3,3",
                                                       "1,64,64,8,8,3,3|1|8>8,8",
                                                       "1,64,64,8,8,3,3|1|9>8,8",
                                                       "1,33,33,8,16,4,4|0|4>8,8",
                                                       "2,224,224,3,768,16,16|0|16>14,14"};
inline constexpr const char* asymmetric_convolutions[] = {
    "2,8,8,32,256,2,5|1,0,1,0|1>8,5",   "2,7,7,64,256,2,5|1,0,1,0|2,3>4,2",
    "1,9,20,16,16,5,10|2,2,4,5|1>9,20", "1,6,6,8,8,3,3|0,2,2,0|1>6,6",
    "2,1,64,32,32,1,4|0,0,3,0|1>1,64",  "2,16,15,64,256,2,5|1,0,1,0|2,3|d2,3>8,2"};
inline constexpr const char* channels_convolutions[] = {
    "1,23,21,7,5,3,3|1|1>23,21",     "2,8,8,1,1,3,3|1|1>8,8",
    "2,8,8,1,16,3,3|1|1>8,8",        "2,8,8,16,1,3,3|1|1>8,8",
    "1,16,16,2,16,7,7|3|1>16,16",    "4,32,32,3,64,3,3|1|1>32,32",
    "2,56,56,3,64,7,7|3|2>28,28",    "2,56,56,4,64,7,7|3|2>28,28",
    "1,4,4,12,8,3,3|0|3>1,1",        "1,23,56,98,128,3,3|4,4,5,5|3>10,22",
    "1,9,9,72,136,3,3|1|1>9,9",      "1,9,9,65,63,3,3|1|1>9,9",
    "1,14,14,129,257,1,1|0|1>14,14", "1,16,16,40,24,3,3|2|1|d2>16,16"};
inline constexpr const char* grouped_convolutions[] = {
    "2,6,6,4,4,3,3|0|1|g4>4,4",           "2,6,6,4,8,3,3|0|1|g4>4,4",
    "2,6,5,4,6,3,2|0|1|g2>4,4",           "2,8,8,4,2,3,3|2,2,1,1|3,2|d4|g2>2,1",
    "1,14,14,64,64,3,3|1|1|g64>14,14",    "1,14,14,96,48,3,3|1|2|g24>7,7",
    "4,14,14,256,256,3,3|1|2|g32>7,7",    "1,56,56,696,768,3,3|1|2|g3>28,28",
    "1,20,20,32,32,31,31|15|1|g32>20,20", "2,1,100,48,48,1,4|0,0,3,0|1|g48>1,100"};
inline constexpr const char* limits_convolutions[] = {"1,40,40,8,8,33,33|16|1>40,40",
                                                      "1,20,300,8,8,1,255|0,0,127,127|1>20,300",
                                                      "1,20,300,8,8,1,257|0,0,128,128|1>20,300",
                                                      "1,140,140,16,16,3,3|64|1|d64>140,140",
                                                      "1,300,300,8,8,3,3|128|1|d128>300,300",
                                                      "1,300,300,8,8,3,3|130|1|d130>300,300",
                                                      "1,40,40,8,16,5,5|0|1|d9>4,4"};
// The last two have more than 2^31 elements.
inline constexpr const char* big_convolutions[] = {
    "65537,1,1,8,8,1,1|0|1>1,1", "70000,2,2,8,8,3,3|1|1>2,2",
    "1,1,1000003,8,8,1,3|0,0,1,1|1>1,1000003", "1,4097,4097,128,8,1,1|0|1>4097,4097",
    "2,1024,1024,16,1100,1,1|0|1>1024,1024"};
// The last one has no output, and is refused.
inline constexpr const char* empty_convolutions[] = {
    "0,8,8,16,16,3,3|1|1>8,8", "1,8,8,0,16,3,3|1|1>8,8", "1,8,8,16,0,3,3|1|1>8,8",
    "1,2,2,8,8,5,5|0|1>0,0"};
// The third one is torch's "same" padding with dilation 3, 2, 1; the last one is a video's.
inline constexpr const char* deep_convolutions[] = {
    "2,16,10,16,64,96,3,4,5|1,0,0,2,1,0|2,2,3|d2,2,3>7,3,2", "2,3,5,8,32,96,3,3,3|1|1>3,5,8",
    "1,4,4,4,1,1,2,3,4|1,2,2,2,1,2|1|d3,2,1>4,4,4", "1,5,7,13,8,8,3,1,1|1,1,0,0,0,0|1>5,7,13",
    "1,124,1282,722,16,16,1,3,3|0|1>124,1280,720"};

// A case of the lists above by its number: "C01_tiny".
struct NastyConvolution {
  std::string name;
  const char* text;

  ConvCase conv() const { return read_row(text).conv; }
  bool is_refused() const { return std::string_view(text).ends_with(">0,0"); }
  // The largest of A, B and out.
  double elements() const {
    double most = 0;
    for (const Extents& shape : shapes_of(conv(), ConvKind::fprop)) {
      double count = 1;
      for (const std::int64_t extent : shape) count *= static_cast<double>(extent);
      most = std::max(most, count);
    }
    return most;
  }
};
inline void PrintTo(const NastyConvolution& convolution, std::ostream* stream) {
  *stream << convolution.text;
}

// All 77, in the order of their numbers.
inline const std::vector<NastyConvolution>& nasty_convolutions() {
  static const std::vector<NastyConvolution> all = [] {
    std::vector<NastyConvolution> list;
    const auto add = [&](const char* word, std::span<const char* const> texts) {
      for (const char* const text : texts) {
        const std::string number = std::to_string(list.size() + 1);
        list.push_back(
            {"C" + std::string(number.size() < 2 ? "0" : "") + number + "_" + word, text});
      }
    };
    add("tiny", tiny_convolutions);
    add("stride", strided_convolutions);
    add("asymmetric", asymmetric_convolutions);
    add("channels", channels_convolutions);
    add("groups", grouped_convolutions);
    add("limit", limits_convolutions);
    add("big", big_convolutions);
    add("zero", empty_convolutions);
    add("three_dimensions", deep_convolutions);
    return list;
  }();
  return all;
}

// The sizes of CUTLASS's tests that PyCUTLASS uses: N,H,W,C,K,R,S|padding|stride>P,Q.
inline constexpr const char* kept_convolutions[] = {"1,1,1,64,8,1,1|1|1>3,3",
                                                    "1,1,8,64,8,1,3|1|1>3,8",
                                                    "1,7,8,64,8,3,3|1|1>7,8",
                                                    "1,7,9,64,8,4,4|1|1>6,8",
                                                    "2,7,9,64,8,5,5|1|1>5,7",
                                                    "3,7,9,64,8,6,5|1|1>4,7",
                                                    "3,7,9,64,8,6,6|1|1>4,6",
                                                    "3,7,9,64,8,7,7|1|1>3,5",
                                                    "1,11,7,64,8,1,1|0|2>6,4",
                                                    "1,11,7,64,8,3,3|1|2>6,4",
                                                    "1,13,11,64,8,1,1|1|2>8,7",
                                                    "1,17,19,64,16,2,2|1|2>9,10",
                                                    "1,23,5,64,16,3,3|1|2>12,3",
                                                    "1,23,21,128,224,3,3|1|1>23,21",
                                                    "1,16,24,128,96,3,3|1|1>16,24",
                                                    "1,55,51,256,512,1,1|0|2>28,26",
                                                    "1,27,23,256,512,3,3|0|3>9,7",
                                                    "1,27,31,256,512,3,3|5,5,7,7|3,4>12,11",
                                                    "1,27,35,256,512,7,5|11,11,7,7|3,5>15,9",
                                                    "1,27,27,256,512,3,3|1|1,2>27,14",
                                                    "1,27,27,256,512,3,3|1|2,1>14,27",
                                                    "3,28,28,256,256,2,2|0|2>14,14",
                                                    "4,4,5,128,256,3,6|0,0,1,1|1>2,2",
                                                    "4,2,3,256,328,3,5|1|1>2,1"};

struct Types {
  DType operands, out;
};

// Draws integers, so that sums are the same in any order of additions.
class Draw {
 public:
  Draw(std::uint64_t seed, int limit) : random_(seed), limit_(limit) {}
  double operator()(DType dtype) {
    const int least = facts(dtype).kind == DTypeKind::unsigned_integer ? 0 : -limit_;
    return least + static_cast<double>(random_() % static_cast<unsigned>(limit_ - least + 1));
  }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }

 private:
  std::mt19937_64 random_;
  int limit_;
};

inline Types draw_types(Draw& draw) {
  constexpr std::array types{
      Types{DType::float32, DType::float32}, Types{DType::float32, DType::float32},
      Types{DType::float16, DType::float16}, Types{DType::bfloat16, DType::float32},
      Types{DType::float64, DType::float64}, Types{DType::int8, DType::int32},
      Types{DType::uint8, DType::int32},     Types{DType::float8_e4m3fn, DType::float32}};
  return types[static_cast<std::size_t>(draw.below(std::ssize(types)))];
}

inline ConvCase draw_case(Draw& draw) {
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return least + draw.below(most - least + 1);
  };
  ConvCase conv;
  const std::int64_t dimensions = from(1, 3);
  conv.images = from(0, 20) == 0 ? 0 : from(1, 3);
  conv.groups = from(0, 2) == 0 ? from(1, 4) : 1;
  conv.channels = conv.groups * (from(0, 30) == 0 ? 0 : from(1, 9));
  conv.filters = conv.groups * from(1, 9);
  conv.mode = from(0, 3) == 0 ? ConvMode::convolution : ConvMode::cross_correlation;
  for (std::int64_t d = 0; d < dimensions; ++d) {
    conv.filter.push_back(from(1, 5));
    conv.stride.push_back(from(0, 1) == 0 ? 1 : from(1, 5));
    conv.dilation.push_back(from(0, 1) == 0 ? 1 : from(1, 4));
    conv.lower.push_back(from(0, 1) == 0 ? 0 : from(0, 4));
    conv.upper.push_back(from(0, 1) == 0 ? conv.lower.back() : from(0, 4));
    const std::int64_t reach = conv.dilation.back() * (conv.filter.back() - 1) + 1;
    const std::int64_t least =
        std::max<std::int64_t>(1, reach - conv.lower.back() - conv.upper.back());
    conv.image.push_back(from(least, least + (dimensions == 1 ? 30 : 8)));
  }
  return conv;
}

}  // namespace gemmery::tests
