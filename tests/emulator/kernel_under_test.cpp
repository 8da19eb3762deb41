// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/kernel_under_test.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <sstream>

#include "emulator/program/parser.hpp"
#include "jit/compiler.hpp"

namespace gemmery::emulator {

std::string compile_file_to_ptx(const std::string& path, const std::string& entry,
                                const std::vector<std::string>& options) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return jit::compile({.source = text.str(),
                       .entry = entry,
                       .target = {90, 'a'},
                       .form = CodeForm::ptx,
                       .extra_options = options})
      .ptx;
}

KernelUnderTest::KernelUnderTest(const std::string& ptx, const std::string& entry) {
  auto program = std::make_shared<const Program>(parse_ptx(ptx));
  image_ = build_image(program, entry, place_variables(*program, memory_));
}

void KernelUnderTest::place(std::vector<std::byte>& block, std::size_t index, const void* value,
                            std::size_t bytes) const {
  ASSERT_LT(index, image_->parameter_offset.size());
  ASSERT_EQ(bytes, image_->parameter_size[index]) << "parameter " << index;
  std::memcpy(block.data() + image_->parameter_offset[index], value, bytes);
}

std::optional<Fault> KernelUnderTest::launch_block(const std::vector<std::byte>& block) {
  request.image = image_;
  request.parameters = block;
  memory_.forget_accesses();
  try {
    statistics_ = run_grid(request, memory_);
    return std::nullopt;
  } catch (const Fault& fault) {
    return fault;
  }
}

TensorMapBytes map_2d(std::uint64_t address, MapElement element, std::uint64_t rows,
                      std::uint64_t columns, std::uint64_t stride_bytes, std::uint32_t box_rows,
                      std::uint32_t box_columns, std::uint32_t swizzle_bytes) {
  TensorMapFields fields{.address = address, .element = element, .rank = 2};
  fields.extents = {columns, rows};
  fields.byte_strides = {stride_bytes};
  fields.box = {box_columns, box_rows};
  fields.element_strides = {1, 1, 1, 1, 1};
  fields.swizzle = swizzle_bytes == 128 ? 3 : swizzle_bytes == 64 ? 2 : swizzle_bytes == 32 ? 1 : 0;
  EXPECT_EQ(find_broken_rule(fields), "");
  return encode(fields);
}

std::vector<std::uint32_t> lines_marked(const std::string& path, const std::string& mark) {
  std::ifstream file(path);
  std::vector<std::uint32_t> lines;
  std::string line;
  for (std::uint32_t number = 1; std::getline(file, line); ++number) {
    for (std::size_t at = line.find(mark); at != std::string::npos; at = line.find(mark, at + 1)) {
      const std::size_t end = at + mark.size();
      if (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end]))) continue;
      lines.push_back(number);
      break;
    }
  }
  return lines;
}

}  // namespace gemmery::emulator
