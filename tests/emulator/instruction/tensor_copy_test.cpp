// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor in kernels: loads and stores of boxes, swizzles, clipping, im2col,
// reductions, and the report of each misuse.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <random>

#include "copy_kernel.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

using tests::CopyLaunch;
using tests::CopyMachine;
using tests::wait_for_phase_0;

constexpr std::uint32_t rows = 100, columns = 72;  // of the matrix in memory, f32

std::vector<std::uint32_t> random_words(std::size_t count) {
  static std::mt19937_64 random(gemmery::tests::random_seed());
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random()) | 0x100;
  return words;
}

TensorMapFields matrix_map(std::uint64_t address, std::uint8_t swizzle) {
  TensorMapFields fields;
  fields.address = address;
  fields.element = MapElement::u32;
  fields.rank = 2;
  fields.extents = {columns, rows};
  fields.byte_strides = {columns * 4};
  fields.box = {swizzle == 0 ? 8u : 4u << swizzle, 32};
  fields.element_strides = {1, 1};
  fields.swizzle = swizzle;
  return fields;
}

std::string load_2d(std::uint32_t bytes, int column, int row) {
  return "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " +
         std::to_string(bytes) + ";\nmov.u32 %r10, " + std::to_string(column) +
         ";\nmov.u32 %r11, " + std::to_string(row) +
         ";\ncp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
         "[%r1], [%rd3, {%r10, %r11}], [%r2];\n";
}

std::string store_plain(std::uint32_t bytes) {
  return "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], " + std::to_string(bytes) +
         ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
}

std::string store_2d(const char* reduction = "") {
  return std::string(*reduction == 0 ? "cp.async.bulk" : "cp.reduce.async.bulk") +
         ".tensor.2d.global.shared::cta." + reduction +
         "tile.bulk_group [%rd3, {%r10, %r11}], [%r1];\n"
         "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
}

bool is_inside(std::int64_t row, std::int64_t column) {
  return row >= 0 && column >= 0 && row < rows && column < columns;
}

TEST(TensorCopy, boxes_arrive_swizzled_and_filled_with_zeros) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(rows * columns);
  const std::uint64_t in = machine.upload(words);
  for (std::uint8_t swizzle = 0; swizzle < 4; ++swizzle) {
    const TensorMapFields map = matrix_map(in, swizzle);
    const std::uint32_t bytes = box_bytes(map), width = map.box[0];
    const std::uint64_t out = machine.allocate(bytes);
    for (const auto& [column, row] : {std::pair{0, 0}, {4, 7}, {-4, -5}, {68, 90}, {200, 0}}) {
      machine.run(load_2d(bytes, column, row) + wait_for_phase_0() + store_plain(bytes), in, out,
                  {.map = encode(map)});
      const auto got = machine.download<std::uint32_t>(out, bytes / 4);
      for (std::uint32_t index = 0; index < bytes / 4; ++index) {
        const std::int64_t y = row + std::int64_t{index / width},
                           x = column + std::int64_t{index % width};
        const std::uint32_t expected =
            is_inside(y, x) ? words[static_cast<std::size_t>(y * columns + x)] : 0;
        ASSERT_EQ(got[swizzled(swizzle, index * 4) / 4], expected)
            << int{swizzle} << " " << column << " " << row << " " << index;
      }
    }
  }
}

TEST(TensorCopy, boxes_leave_where_they_lie_inside_only) {
  CopyMachine machine;
  for (std::uint8_t swizzle = 0; swizzle < 4; ++swizzle) {
    for (const auto& [column, row] : {std::pair{0, 0}, {4, 7}, {0, 95}, {68, 90}}) {
      const std::vector<std::uint32_t> old = random_words(rows * columns);
      const std::uint64_t out = machine.upload(old);
      TensorMapFields map = matrix_map(out, swizzle);
      const std::uint32_t bytes = box_bytes(map), width = map.box[0];
      const std::vector<std::uint32_t> tile = random_words(bytes / 4);
      const std::uint64_t in = machine.upload(tile);
      const std::string load =
          "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " +
          std::to_string(bytes) +
          ";\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], " +
          std::to_string(bytes) + ", [%r2];\nmov.u32 %r10, " + std::to_string(column) +
          ";\nmov.u32 %r11, " + std::to_string(row) + ";\n" + wait_for_phase_0();
      const auto expect = [&](const char* reduction, auto combine) {
        machine.run(load + store_2d(reduction), in, out, {.map = encode(map)});
        std::vector<std::uint32_t> expected = old;
        for (std::uint32_t index = 0; index < bytes / 4; ++index) {
          const std::int64_t y = row + std::int64_t{index / width},
                             x = column + std::int64_t{index % width};
          if (!is_inside(y, x)) continue;
          std::uint32_t& at = expected[static_cast<std::size_t>(y * columns + x)];
          at = combine(at, tile[swizzled(swizzle, index * 4) / 4]);
        }
        EXPECT_EQ(machine.download<std::uint32_t>(out, rows * columns), expected) << reduction;
        EXPECT_TRUE(machine.memory().copy_in(out, old.data(), old.size() * 4));
      };
      expect("", [](std::uint32_t, std::uint32_t value) { return value; });
      expect("add.", [](std::uint32_t was, std::uint32_t value) { return was + value; });
      expect("xor.", [](std::uint32_t was, std::uint32_t value) { return was ^ value; });
    }
  }
}

// As in CUTLASS's epilogues. Two warps race, and so do lanes whose bytes come from two addresses; a
// reduction adds the values of all lanes.
TEST(TensorCopy, all_lanes_of_a_warp_may_store_one_box) {
  CopyMachine machine;
  const std::vector<std::uint32_t> tiles = random_words(2048);
  const std::uint64_t in = machine.upload(tiles);
  const std::string load =
      "mov.u32 %r10, 0;\nmov.u32 %r11, 0;\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra LOADED;\n"
      "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 8192;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 8192, "
      "[%r2];\nLOADED:\nbar.sync 0;\n" +
      wait_for_phase_0();
  const std::string apart =
      "and.b32 %r12, %r3, 1;\nshl.b32 %r12, %r12, 12;\nadd.u32 %r1, %r1, %r12;\n";
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const std::uint64_t out = machine.upload(std::vector<std::uint32_t>(rows * columns));
    const auto launch = [&](std::uint32_t threads) {
      return CopyLaunch{.threads = threads, .seed = seed, .map = encode(matrix_map(out, 3))};
    };
    machine.run(load + store_2d(), in, out, launch(32));
    const std::uint32_t first = tiles[0];
    EXPECT_EQ(machine.download<std::uint32_t>(out, 1)[0], first);
    machine.run(load + store_2d("add."), in, out, launch(32));
    EXPECT_EQ(machine.download<std::uint32_t>(out, 1)[0], 33 * first);
    EXPECT_EQ(machine.fault_of(load + store_2d(), in, out, launch(64)).kind, FaultKind::race);
    EXPECT_EQ(machine.fault_of(load + apart + store_2d(), in, out, launch(32)).kind,
              FaultKind::race);
  }
}

// As on an H200: rows of 70 words end within a unit of 16 bytes, so two words are beyond the row.
TEST(TensorCopy, a_store_writes_the_whole_last_unit_of_a_row) {
  CopyMachine machine;
  const std::vector<std::uint32_t> old = random_words(rows * columns);
  TensorMapFields map = matrix_map(0, 0);
  map.extents[0] = columns - 2;
  const std::uint32_t bytes = box_bytes(map), width = map.box[0];
  const std::vector<std::uint32_t> tile = random_words(bytes / 4);
  const std::uint64_t in = machine.upload(tile);
  const std::string code =
      "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " +
      std::to_string(bytes) +
      ";\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], " +
      std::to_string(bytes) + ", [%r2];\nmov.u32 %r10, " + std::to_string(columns - width) +
      ";\nmov.u32 %r11, " + std::to_string(rows - 32) + ";\n" + wait_for_phase_0() + store_2d();
  map.address = machine.upload(old);
  machine.run(code, in, map.address, {.map = encode(map)});
  std::vector<std::uint32_t> expected = old;
  for (std::uint32_t index = 0; index < bytes / 4; ++index)
    expected[(rows - 32 + index / width) * columns + columns - width + index % width] = tile[index];
  EXPECT_EQ(machine.download<std::uint32_t>(map.address, rows * columns), expected);

  const std::uint64_t exact = machine.upload(
      std::vector<std::uint32_t>(old.begin(), old.end() - 2));  // ends where the last row does
  map.address = exact;
  try {
    machine.run(code, in, exact, {.map = encode(map)});
    ADD_FAILURE() << "the last unit reaches beyond the allocation";
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.kind, FaultKind::out_of_bounds);
    EXPECT_NE(fault.message.find("whole units of 16 bytes"), std::string::npos) << fault.message;
  }
}

TEST(TensorCopy, im2col_loads_pixels_with_their_offset) {
  CopyMachine machine;
  // 3 images of 6 x 5 pixels with 4 channels, padded by one for a 3 x 3 filter.
  const std::uint32_t channels = 4, width = 5, height = 6, images = 3, pixels = 16;
  const std::vector<std::uint32_t> words = random_words(channels * width * height * images);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(pixels * channels * 4);
  TensorMapFields map;
  map.address = in;
  map.element = MapElement::u32;
  map.rank = 4;
  map.extents = {channels, width, height, images};
  map.byte_strides = {channels * 4, channels * width * 4, channels * width * height * 4};
  map.element_strides = {1, 1, 1, 1};
  map.is_im2col = true;
  map.lower_corner = {-1, -1};
  map.upper_corner = {-1, -1};
  map.channels_per_pixel = channels;
  map.pixels_per_column = pixels;
  ASSERT_EQ(find_broken_rule(map), "");
  machine.run(
      "mbarrier.init.shared::cta.b64 [%r2], 1;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;\n"
      "mov.u16 %h1, 2;\nmov.u16 %h2, 1;\n"
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], "
      "[%rd3, {0, 2, 4, 0}], [%r2], {%h1, %h2};\n" +
          wait_for_phase_0() + store_plain(256),
      in, out, {.map = encode(map)});
  const auto got = machine.download<std::uint32_t>(out, pixels * channels);
  std::int64_t w = 2, h = 4, n = 0;
  for (std::uint32_t pixel = 0; pixel < pixels; ++pixel) {
    const std::int64_t x = w + 2, y = h + 1;
    const bool inside = x >= 0 && y >= 0 && x < width && y < height && n < images;
    for (std::uint32_t channel = 0; channel < channels; ++channel) {
      const std::size_t at =
          static_cast<std::size_t>(((n * height + y) * width + x) * channels) + channel;
      EXPECT_EQ(got[pixel * channels + channel], inside ? words[at] : 0) << pixel;
    }
    if (++w > width - 2) {
      w = -1;
      if (++h > height - 2) {
        h = -1;
        ++n;
      }
    }
  }
}

TEST(TensorCopy, each_misuse_is_reported_by_its_kind) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(rows * columns));
  const std::uint64_t out = machine.allocate(4096);
  const TensorMapFields good = matrix_map(in, 3);
  TensorMapFields tall = good, narrow = good, three = good;
  tall.extents[1] = rows + 1;
  narrow.box[0] = 16;
  three.rank = 3;
  three.extents[2] = three.box[2] = three.element_strides[2] = 1;
  three.byte_strides[1] = 4096;
  const std::string load = load_2d(4096, 0, 90) + wait_for_phase_0();
  struct Row {
    FaultKind kind;
    std::string body;
    TensorMapBytes map;
    const char* says;
  };
  const Row faults[] = {
      {FaultKind::out_of_bounds, load, encode(tall), "row 10 of a tensor box"},
      {FaultKind::tensor_map, load, TensorMapBytes{}, "none that cuTensorMapEncode"},
      {FaultKind::tensor_map, load, encode(narrow), "swizzle of 128"},
      {FaultKind::tensor_map, load, encode(three), "this one has 3 dimensions"},
      {FaultKind::misaligned, "add.u32 %r1, %r1, 64;\n" + load, encode(good), ""},
      {FaultKind::misaligned, "add.u64 %rd3, %rd3, 32;\n" + load, encode(good), "tensor map"},
      {FaultKind::tensor_map, "mov.u64 %rd3, %rd4;\n" + load, encode(good), "__grid_constant__"},
      {FaultKind::deadlock, load_2d(4080, 0, 0) + wait_for_phase_0(), encode(good), ""},
      {FaultKind::unwritten_read, "mov.u32 %r10, 0;\nmov.u32 %r11, 0;\n" + store_2d(), encode(good),
       ""},
      {FaultKind::unwritten_register, "mov.u32 %r10, 0;\n" + store_2d(), encode(good), "%r11"},
      {FaultKind::illegal_instruction, load_2d(4096, 3, 0), encode(good), "multiples of 16 bytes"},
      {FaultKind::illegal_instruction, "mov.u32 %r10, 0;\nmov.u32 %r11, -1;\n" + store_2d(),
       encode(good), "coordinates from 0 on"},
  };
  for (const Row& row : faults) {
    const Fault fault = machine.fault_of(row.body, in, out, {.map = row.map});
    EXPECT_EQ(fault.kind, row.kind) << fault.report() << "\n" << row.body;
    EXPECT_NE(fault.message.find(row.says), std::string::npos) << fault.report();
    EXPECT_NE(fault.place.ptx_line, 0u);
  }
}

// --- maps that a kernel changes -----------------------------------------------------------------

// Copies the parameter's map, word by word, with the instruction `store`.
std::string copy_map(const std::string& store) {
  std::string text;
  for (int word = 0; word < 16; ++word)
    text += "ld.param.u64 %rd11, [map+" + std::to_string(word * 8) + "];\n" + store + "+" +
            std::to_string(word * 8) + "], %rd11;\n";
  return text;
}

// Modifies the parameter's map in shared memory and writes it after the output.
std::string edit_map() {
  return "add.u32 %r20, %r1, 16384;\nadd.u64 %rd10, %rd2, 4096;\nmov.u64 %rd3, %rd10;\n" +
         copy_map("st.shared.u64 [%r20") +
         "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r20], %rd1;\n"
         "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r20], 1, " +
         std::to_string(rows) + ";\n";
}

const std::string publish_map =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
    "[%rd10], [%r20], 128;\n";
const std::string release_maps = "fence.proxy.tensormap::generic.release.gpu;\n";
const std::string acquire_map = "fence.proxy.tensormap::generic.acquire.gpu [%rd10], 128;\n";

TEST(TensorCopy, a_changed_map_is_handed_to_the_tensor_map_proxy) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(rows * columns));
  const std::uint64_t out = machine.allocate(4096 + 128);
  const TensorMapBytes map = encode(matrix_map(in, 3));
  const std::string load = load_2d(4096, 0, 0), wait = wait_for_phase_0();
  const std::string plain = edit_map() + copy_map("st.global.u64 [%rd10");
  for (const std::string& sound :
       {edit_map() + publish_map + acquire_map + load + wait,
        plain + release_maps + acquire_map + load + wait,
        edit_map() + publish_map + acquire_map + load + wait + publish_map + acquire_map})
    machine.run(sound, in, out, {.map = map});
  struct Row {
    const char* name;
    FaultKind kind;
    std::string body;
  };
  const Row faults[] = {
      {"no acquire", FaultKind::missing_proxy_fence, edit_map() + publish_map + load + wait},
      {"acquired before it is published", FaultKind::missing_proxy_fence,
       edit_map() + acquire_map + publish_map + load + wait},
      {"no release", FaultKind::missing_proxy_fence, plain + acquire_map + load + wait},
      {"a store uses it without an acquire", FaultKind::missing_proxy_fence,
       load + wait + edit_map() + publish_map + store_2d() +
           "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"},
      {"replaced while a load is under way", FaultKind::race,
       edit_map() + publish_map + acquire_map + load + publish_map + wait},
  };
  for (const Row& row : faults) {
    const Fault fault = machine.fault_of(row.body, in, out, {.map = map});
    EXPECT_EQ(fault.kind, row.kind) << row.name << ": " << fault.report();
  }
}

TEST(TensorCopy, maps_can_be_edited_in_shared_memory_and_used_from_global_memory) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(rows * columns);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(4096 + 128);
  TensorMapFields wrong = matrix_map(0x1000, 3);
  wrong.extents[1] = 1;
  machine.run(edit_map() + publish_map + acquire_map + load_2d(4096, 0, 0) + wait_for_phase_0() +
                  store_plain(4096),
              in, out, {.map = encode(wrong)});
  const auto got = machine.download<std::uint32_t>(out, 1024);
  for (std::uint32_t index = 0; index < 1024; ++index)
    ASSERT_EQ(got[swizzled(3, index * 4) / 4], words[index / 32 * columns + index % 32]);
}

// Zeros, then each field of matrix_map(%rd1, 3).
std::string make_map() {
  const std::string replace = "tensormap.replace.tile.", of = ".shared::cta.b1024.";
  std::string text =
      "add.u32 %r20, %r1, 16384;\nadd.u64 %rd10, %rd2, 4096;\nmov.u64 %rd3, %rd10;\n";
  for (int word = 0; word < 16; ++word)
    text += "st.shared.u64 [%r20+" + std::to_string(word * 8) + "], 0;\n";
  text += replace + "global_address" + of + "b64 [%r20], %rd1;\n" + replace + "rank" + of +
          "b32 [%r20], 1;\n" + replace + "elemtype" + of + "b32 [%r20], 2;\n" + replace +
          "interleave_layout" + of + "b32 [%r20], 0;\n" + replace + "swizzle_mode" + of +
          "b32 [%r20], 3;\n" + replace + "fill_mode" + of + "b32 [%r20], 0;\n" + replace +
          "global_stride" + of + "b64 [%r20], 0, " + std::to_string(columns * 4) + ";\n";
  const auto dimensions = [&](const std::string& field, std::uint64_t first, std::uint64_t second) {
    for (const auto& [ordinal, value] : {std::pair{"0", first}, std::pair{"1", second}})
      text +=
          replace + field + of + "b32 [%r20], " + ordinal + ", " + std::to_string(value) + ";\n";
  };
  const TensorMapFields map = matrix_map(0, 3);
  dimensions("box_dim", map.box[0], map.box[1]);
  dimensions("global_dim", map.extents[0], map.extents[1]);
  dimensions("element_stride", 1, 1);
  return text;
}

TEST(TensorCopy, maps_can_be_made_from_zeros_field_by_field) {
  CopyMachine machine;
  const std::vector<std::uint32_t> words = random_words(rows * columns);
  const std::uint64_t in = machine.upload(words), out = machine.allocate(4096 + 128);
  machine.run(make_map() + publish_map + acquire_map + load_2d(4096, 0, 0) + wait_for_phase_0() +
                  store_plain(4096),
              in, out, {.map = encode(matrix_map(0x1000, 0))});
  const auto got = machine.download<std::uint32_t>(out, 1024);
  for (std::uint32_t index = 0; index < 1024; ++index)
    ASSERT_EQ(got[swizzled(3, index * 4) / 4], words[index / 32 * columns + index % 32]);
}

// Prints a figure; there is no limit. Boxes of 64 x 64 bf16, whose goal is 20 us.
TEST(TensorCopy, loading_a_box_takes_microseconds) {
  CopyMachine machine;
  const std::uint64_t in = machine.upload(random_words(64 * 32));
  TensorMapFields map = matrix_map(in, 3);
  map.element = MapElement::bf16;
  map.extents = {64, 64};
  map.byte_strides = {128};
  map.box = {64, 64};
  constexpr int boxes = 2000;
  const std::string body =
      "mbarrier.init.shared::cta.b64 [%r2], 1;\nmov.u32 %r12, 0;\nmov.u32 %r10, 0;\n"
      "LOOP: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 8192;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%r1], [%rd3, {%r10, %r10}], [%r2];\nand.b32 %r13, %r12, 1;\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r13;\n@!%p1 bra WAIT;\n"
      "add.u32 %r12, %r12, 1;\nsetp.lt.u32 %p2, %r12, " +
      std::to_string(boxes) + ";\n@%p2 bra LOOP;\n";
  const std::clock_t start = std::clock();
  machine.run(body, in, 0, {.map = encode(map)});
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%.1f us of processor time a box of 8 KB\n", seconds * 1e6 / boxes);
}

}  // namespace
}  // namespace gemmery::emulator
