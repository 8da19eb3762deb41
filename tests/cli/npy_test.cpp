// SPDX-License-Identifier: Apache-2.0
#include "cli/npy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gemmery/error.hpp>
#include "cli/emulation_words.hpp"

namespace gemmery::cli {
namespace {

using testing::HasSubstr;

// The message of the exception that a call throws; "" if it throws none.
template <class Body>
std::string refusal_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string file_with(const std::string& header, std::size_t bytes) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header + std::string(bytes, '\x2a');
}

TEST(Npy, arrays_come_back_as_they_were_written) {
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{}, {3}, {2, 5}, {0}, {4, 1, 2}}) {
    NpyArray array{.descr = "<f4", .shape = shape, .bytes = {}};
    std::size_t bytes = 4;
    for (const std::uint64_t extent : shape) bytes *= extent;
    array.bytes.resize(bytes, std::byte{7});
    const std::string file = format_npy(array);
    EXPECT_EQ((file.size() - bytes) % 64, 0U);
    const NpyArray again = parse_npy(file, "f");
    EXPECT_EQ(again.descr, array.descr);
    EXPECT_EQ(again.shape, array.shape);
    EXPECT_EQ(again.bytes, array.bytes);
  }
}

TEST(Npy, what_is_no_plain_array_in_c_order_is_refused_by_name) {
  const auto refusal = [](const std::string& header, std::size_t bytes) {
    return refusal_of([&] { parse_npy(file_with(header, bytes), "a.npy"); });
  };
  EXPECT_EQ(refusal("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n", 16), "");
  EXPECT_EQ(refusal("{\"shape\": (), \"descr\": \"|u1\", \"fortran_order\": False}", 1), "");
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16),
              HasSubstr("Fortran"));
  EXPECT_THAT(refusal("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 16),
              HasSubstr("'|O'"));
  EXPECT_THAT(refusal("{'descr': '|O8', 'fortran_order': False, 'shape': (2,), }", 16),
              HasSubstr("objects"));
  EXPECT_THAT(refusal("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8),
              HasSubstr("structured"));
  EXPECT_THAT(refusal("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8),
              HasSubstr("big-endian"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7),
              HasSubstr("8 bytes"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'shape': (2,), }", 8), HasSubstr("fortran_order"));
  EXPECT_THAT(refusal("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, "
                      "2), }",
                      8),
              HasSubstr("2^64"));
  EXPECT_THAT(refusal_of([] { parse_npy("PK\x03\x04", "a.npz"); }), HasSubstr("a.npz"));
  EXPECT_THAT(refusal_of([] { parse_npy(std::string("\x93NUMPY\x01\x00\xff\xff", 10), "f"); }),
              HasSubstr("ends early"));
}

TEST(EmulationWords, extents_are_up_to_three_numbers) {
  EXPECT_EQ(parse_extents("7", "--grid"), (std::array<std::uint32_t, 3>{7, 1, 1}));
  EXPECT_EQ(parse_extents("7x8x9", "--grid"), (std::array<std::uint32_t, 3>{7, 8, 9}));
  for (const char* const word : {"", "x", "7x", "7x8x9x1", "-1", "4294967296", "7,8"})
    EXPECT_THAT(refusal_of([&] { parse_extents(word, "--grid"); }), HasSubstr("--grid")) << word;
}

TEST(EmulationWords, a_trace_is_a_block_and_a_warp) {
  EXPECT_EQ(parse_trace("3").block, (std::array<std::uint32_t, 3>{3, 0, 0}));
  EXPECT_EQ(parse_trace("3").warp, -1);
  EXPECT_EQ(parse_trace("3,1,2:7").block, (std::array<std::uint32_t, 3>{3, 1, 2}));
  EXPECT_EQ(parse_trace("3,1,2:7").warp, 7);
  for (const char* const word : {"x", "1,2,3,4", "1:", "1:2x3", ":2"})
    EXPECT_THAT(refusal_of([&] { parse_trace(word); }), HasSubstr("--trace")) << word;
}

TEST(EmulationWords, arguments_are_buffers_or_numbers) {
  const NamedArgument zeros = parse_argument("out=zeros:bf16:3x4", 2);
  EXPECT_EQ(zeros.name, "out");
  EXPECT_EQ(zeros.descr, "<u2");
  EXPECT_EQ(zeros.argument.bytes.size(), 24U);
  EXPECT_TRUE(zeros.argument.is_written);
  const NamedArgument unwritten = parse_argument("unwritten:<i8:5", 2);
  EXPECT_EQ(unwritten.name, "arg2");
  EXPECT_EQ(unwritten.argument.bytes.size(), 40U);
  EXPECT_FALSE(unwritten.argument.is_written);
  const NamedArgument map = parse_argument("a=map:8x64/128:unwritten:bf16:20x100", 0);
  EXPECT_EQ(map.argument.kind, EmulationArgument::Kind::tensor_map);
  EXPECT_EQ(map.argument.view.dtype, DType::bfloat16);
  EXPECT_EQ(map.argument.view.extents[0], 100U) << "the fastest first";
  EXPECT_EQ(map.argument.view.byte_strides[0], 200U);
  EXPECT_EQ(map.argument.view.box[1], 8U);
  EXPECT_EQ(map.argument.view.swizzle_bytes, 128);
  EXPECT_FALSE(map.argument.is_written);
  EXPECT_EQ(parse_argument("n=12", 0).argument.text, "12");
  for (const char* const word :
       {"zeros:f32", "zeros:f99:3", "zeros:f32:3,4", "a/b=zeros:f32:3", "map:8x8",
        "map:8x8/x:zeros:f32:8x8", "map:8:zeros:f32:8x8", "map:8:3"})
    EXPECT_NE(refusal_of([&] { parse_argument(word, 0); }), "") << word;
}

}  // namespace
}  // namespace gemmery::cli
