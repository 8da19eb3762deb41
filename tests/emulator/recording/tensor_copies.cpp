// SPDX-License-Identifier: Apache-2.0
// Random tensor maps and boxes, their kernels, and their execution on a device.
#include "tests/emulator/recording/tensor_copies.hpp"

#include <gemmery/buffer.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>

#include "driver/code.hpp"
#include "driver/driver.hpp"

namespace gemmery::recording {
namespace {

namespace cuda = driver::cuda;
using emulator::MapElement;
using emulator::TensorMapFields;

constexpr int legal_copies = 3000;
constexpr int copies_of_a_kind = 12;

// --- cases --------------------------------------------------------------------------------------

class Random {  // splitmix64
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // One of low … high.
  int between(int low, int high) {
    return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(int times) { return between(1, times) == 1; }

 private:
  std::uint64_t state_;
};

// Extents of the tensor and, in `row`, elements of dimension 0 in a copy: whole chunks of 16 bytes,
// at most as many as the swizzle spans.
void draw_tensor(Random& random, TensorMapFields& map, std::uint32_t& row) {
  map.element = static_cast<MapElement>(random.between(0, 12));
  map.fills_nan = emulator::is_float(map.element) && random.once_in(2);
  map.swizzle = static_cast<std::uint8_t>(random.between(0, 3));
  const std::uint32_t width = emulator::bytes_of(map.element);
  const int chunks = map.swizzle == 0 ? random.between(1, 8) : 1 << map.swizzle;
  row = static_cast<std::uint32_t>(chunks) * 16 / width;
  map.extents[0] = static_cast<std::uint64_t>(random.between(1, 40));
  for (std::uint32_t d = 1; d < map.rank; ++d)
    map.extents[d] = static_cast<std::uint64_t>(random.between(1, map.rank > 3 ? 5 : 9));
  std::uint64_t bytes = map.extents[0] * width;
  for (std::uint32_t d = 0; d + 1 < map.rank; ++d) {
    map.byte_strides[d] =
        (bytes + 15) / 16 * 16 +
        16 * static_cast<std::uint64_t>(random.once_in(3) ? random.between(1, 2) : 0);
    bytes = map.byte_strides[d] * map.extents[d + 1];
  }
  map.element_strides.fill(1);
}

std::size_t memory_bytes_of(const TensorMapFields& map) {
  std::uint64_t bytes = map.extents[0] * emulator::bytes_of(map.element);
  if (map.rank > 1) bytes = map.byte_strides[map.rank - 2] * map.extents[map.rank - 1];
  return (bytes + 255) / 256 * 256;
}

// The coordinate of dimension 0: hardware requires whole chunks of 16 bytes, and for stores none
// below 0.
int draw_first(Random& random, const TensorCopy& copy) {
  const int chunk = 16 / static_cast<int>(emulator::bytes_of(copy.map.element));
  const int last_chunk = static_cast<int>(copy.map.extents[0]) / chunk;
  if (copy.is_store || random.once_in(2)) return chunk * random.between(0, last_chunk / 2);
  return chunk * random.between(-2, last_chunk + 1);
}

void draw_tile(Random& random, TensorCopy& copy) {
  TensorMapFields& map = copy.map;
  std::uint32_t row = 0;
  draw_tensor(random, map, row);
  map.box[0] = row;
  std::uint32_t left = largest_box / (row * emulator::bytes_of(map.element));
  for (std::uint32_t d = 1; d < map.rank; ++d) {
    const int most = std::min<int>(static_cast<int>(left), map.rank > 3 ? 4 : 9);
    const auto steps = static_cast<std::uint32_t>(random.between(1, std::max(most, 1)));
    left /= steps;
    if (random.once_in(5))
      map.element_strides[d] = static_cast<std::uint32_t>(random.between(2, 3));
    map.box[d] = (steps - 1) * map.element_strides[d] + 1;
  }
  copy.coordinates[0] = draw_first(random, copy);
  for (std::uint32_t d = 1; d < map.rank; ++d) {
    const int beyond = copy.is_store ? 0 : static_cast<int>(map.box[d]) + 1;
    copy.coordinates[d] =
        random.once_in(3) ? 0 : random.between(-beyond, static_cast<int>(map.extents[d]) + 1);
  }
}

int last_pixel(const TensorMapFields& map, std::uint32_t spatial) {
  return static_cast<int>(map.extents[spatial + 1]) - 1 + map.upper_corner[spatial];
}

// The pixel box, not empty. Stores have none.
void draw_corners(Random& random, TensorCopy& copy) {
  TensorMapFields& map = copy.map;
  for (std::uint32_t spatial = 0; spatial + 2 < map.rank; ++spatial) {
    map.element_strides[spatial + 1] = static_cast<std::uint32_t>(random.between(1, 3));
    const auto extent = static_cast<int>(map.extents[spatial + 1]);
    const int lower = copy.is_store ? random.between(0, extent - 1) : random.between(-4, 3);
    const int highest = copy.is_store ? 0 : 4;
    map.lower_corner[spatial] = lower;
    map.upper_corner[spatial] =
        random.between(std::min(std::max(lower + 1 - extent, -4), highest), highest);
  }
}

void draw_column(Random& random, TensorCopy& copy) {
  TensorMapFields& map = copy.map;
  map.is_im2col = true;
  draw_tensor(random, map, map.channels_per_pixel);
  draw_corners(random, copy);
  const std::uint32_t most =
      largest_box / (map.channels_per_pixel * emulator::bytes_of(map.element));
  map.pixels_per_column = static_cast<std::uint32_t>(random.between(1, static_cast<int>(most)));
  copy.coordinates[0] = draw_first(random, copy);
  for (std::uint32_t spatial = 0; spatial + 2 < map.rank; ++spatial) {
    const int lower = map.lower_corner[spatial];
    const int last = last_pixel(map, spatial);
    const auto stride = static_cast<int>(map.element_strides[spatial + 1]);
    const int step = random.between(0, (last - lower) / stride);
    copy.coordinates[spatial + 1] =
        random.once_in(4) ? random.between(lower, last) : lower + step * stride;
    if (!copy.is_store) copy.offsets[spatial] = static_cast<std::uint16_t>(random.between(0, 6));
  }
  copy.coordinates[map.rank - 1] = random.between(0, static_cast<int>(map.extents[map.rank - 1]));
}

TensorCopy draw_copy(std::uint64_t number) {
  Random random(number * 0x1234567 + 99);
  for (;;) {
    TensorCopy copy;
    copy.is_store = random.once_in(4);
    const bool is_im2col = random.once_in(2);
    copy.map.rank = static_cast<std::uint32_t>(random.between(is_im2col ? 3 : 1, 5));
    if (is_im2col)
      draw_column(random, copy);
    else
      draw_tile(random, copy);
    copy.map.address = 1 << 20;
    const bool is_legal = emulator::find_broken_rule(copy.map).empty() &&
                          emulator::find_unknown_layout(copy.map).empty() &&
                          emulator::box_bytes(copy.map) <= largest_box;
    if (!is_legal) continue;
    copy.memory_bytes = memory_bytes_of(copy.map);
    return copy;
  }
}

bool break_column(BrokenCopy kind, Random& random, TensorCopy& copy) {
  TensorMapFields& map = copy.map;
  const auto spatial =
      static_cast<std::uint32_t>(random.between(0, static_cast<int>(map.rank) - 3));
  switch (kind) {
    case BrokenCopy::base_pixel_outside: {
      const int by = random.between(1, 3);
      const bool is_before = !copy.is_store && random.once_in(2);
      copy.coordinates[spatial + 1] =
          is_before ? map.lower_corner[spatial] - by : last_pixel(map, spatial) + by;
      return true;
    }
    case BrokenCopy::wide_offset:
      if (copy.is_store || map.rank == 3) return false;
      copy.offsets[spatial] =
          static_cast<std::uint16_t>((map.rank == 4 ? 256 : 32) + random.between(0, 3));
      return true;
    case BrokenCopy::stride_of_images:
      map.element_strides[map.rank - 1] = static_cast<std::uint32_t>(random.between(2, 3));
      return true;
    case BrokenCopy::corners_of_store:
      if (!copy.is_store) return false;
      map.lower_corner[spatial] = -random.between(1, 2);
      return true;
    default:
      return false;
  }
}

bool break_copy(BrokenCopy kind, Random& random, TensorCopy& copy) {
  const int last = static_cast<int>(copy.map.rank) - 1;
  if (kind == BrokenCopy::begins_amid_chunk) {
    if (emulator::bytes_of(copy.map.element) == 16) return false;
    copy.coordinates[0] += 1;
    return true;
  }
  if (kind == BrokenCopy::negative_store) {
    const auto d = static_cast<std::size_t>(random.between(0, last));
    const int chunk = 16 / static_cast<int>(emulator::bytes_of(copy.map.element));
    copy.coordinates[d] = d == 0 ? -chunk : -random.between(1, 2);
    return copy.is_store && !copy.map.is_im2col;
  }
  return copy.map.is_im2col && break_column(kind, random, copy) &&
         emulator::find_broken_rule(copy.map).empty();
}

// --- kernels ------------------------------------------------------------------------------------

constexpr unsigned threads = 128;

std::string join(const char* prefix, std::uint32_t count) {
  std::string text;
  for (std::uint32_t index = 0; index < count; ++index)
    text += (index == 0 ? "" : ", ") + (prefix + std::to_string(index));
  return text;
}

std::string kernel_name(const TensorCopy& copy) {
  return std::string(copy.is_store ? "store_" : "load_") +
         (copy.map.is_im2col ? "im2col_" : "tile_") + std::to_string(copy.map.rank);
}

std::string copy_text(const TensorCopy& copy) {
  const std::uint32_t rank = copy.map.rank;
  const std::string head = "cp.async.bulk.tensor." + std::to_string(rank) + "d.";
  const std::string tensor = "[%map, {" + join("%c", rank) + "}]";
  if (copy.is_store) {
    return "@%first " + head + "global.shared::cta." +
           (copy.map.is_im2col ? "im2col_no_offs" : "tile") + ".bulk_group " + tensor +
           ", [%box];\n@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group 0;\n";
  }
  return "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], %bytes;\n@%first " + head +
         "shared::cluster.global." + (copy.map.is_im2col ? "im2col" : "tile") +
         ".mbarrier::complete_tx::bytes [%box], " + tensor + ", [%bar]" +
         (copy.map.is_im2col ? ", {" + join("%o", rank - 2) + "}" : "") +
         ";\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0;\n@!%done bra "
         "WAIT;\n";
}

// The kernel fills the box from `buffer` first and copies it to `buffer` at the end.
std::string kernel_text(const TensorCopy& copy) {
  std::string text = ".visible .entry " + kernel_name(copy) +
                     "(.param .align 64 .b8 map[128], .param .u64 buffer, .param .u32 bytes";
  for (int d = 0; d < 5; ++d) text += ", .param .s32 c" + std::to_string(d);
  for (int d = 0; d < 3; ++d) text += ", .param .u16 o" + std::to_string(d);
  text +=
      ")\n{\n.reg .pred %first, %done, %more;\n.reg .b32 %box, %bar, %bytes, %at, %word, %to;\n"
      ".reg .b32 %c<5>;\n.reg .b16 %o<3>;\n.reg .b64 %map, %buffer, %from;\n"
      ".shared .align 1024 .b8 box[" +
      std::to_string(largest_box) +
      "];\n.shared .align 8 .b64 bar;\nmov.b64 %map, map;\ncvta.param.u64 %map, %map;\n"
      "ld.param.u64 %buffer, [buffer];\ncvta.to.global.u64 %buffer, %buffer;\n"
      "ld.param.u32 %bytes, [bytes];\nmov.u32 %box, box;\nmov.u32 %bar, bar;\n";
  for (int d = 0; d < 5; ++d)
    text += "ld.param.s32 %c" + std::to_string(d) + ", [c" + std::to_string(d) + "];\n";
  for (int d = 0; d < 3; ++d)
    text += "ld.param.u16 %o" + std::to_string(d) + ", [o" + std::to_string(d) + "];\n";
  const std::string walk = "mov.u32 %at, %tid.x;\nshl.b32 %at, %at, 2;\n";
  const auto loop = [&](const std::string& label, const std::string& body) {
    return walk + label + ":\nsetp.lt.u32 %more, %at, " + std::to_string(largest_box) +
           ";\n@!%more bra " + label +
           "_END;\ncvt.u64.u32 %from, %at;\n"
           "add.s64 %from, %from, %buffer;\nadd.u32 %to, %box, %at;\n" +
           body + "add.u32 %at, %at, " + std::to_string(4 * threads) + ";\nbra " + label + ";\n" +
           label + "_END:\n";
  };
  text += loop("FILL", "ld.global.b32 %word, [%from];\nst.shared.b32 [%to], %word;\n");
  text +=
      "mov.u32 %at, %tid.x;\nsetp.eq.u32 %first, %at, 0;\n"
      "@%first mbarrier.init.shared::cta.b64 [%bar], 1;\nfence.proxy.async;\nbar.sync 0;\n";
  text += copy_text(copy);
  text += "bar.sync 0;\n";
  text += loop("TAKE", "ld.shared.b32 %word, [%to];\nst.global.b32 [%from], %word;\n");
  return text + "ret;\n}\n";
}

std::string module_text() {
  std::string text = ".version 8.0\n.target sm_90a\n.address_size 64\n";
  for (const bool is_store : {false, true}) {
    for (const bool is_im2col : {false, true}) {
      for (std::uint32_t rank = is_im2col ? 3 : 1; rank <= 5; ++rank) {
        TensorCopy copy;
        copy.is_store = is_store;
        copy.map.is_im2col = is_im2col;
        copy.map.rank = rank;
        text += kernel_text(copy);
      }
    }
  }
  return text;
}

// --- running ------------------------------------------------------------------------------------

}  // namespace

std::vector<TensorCopy> all_tensor_copies() {
  std::vector<TensorCopy> copies;
  for (int number = 0; number < legal_copies; ++number)
    copies.push_back(draw_copy(static_cast<std::uint64_t>(number)));
  return copies;
}

std::vector<TensorCopy> broken_tensor_copies(BrokenCopy kind) {
  std::vector<TensorCopy> copies;
  for (std::uint64_t number = legal_copies; copies.size() < copies_of_a_kind; ++number) {
    TensorCopy copy = draw_copy(number);
    Random random(number);
    if (break_copy(kind, random, copy)) copies.push_back(copy);
  }
  return copies;
}

struct TensorCopyRunner::Machine {
  explicit Machine(Device device)
      : device_(device),
        gpu_(driver::open_device(device)),
        current_(gpu_),
        stream_(device),
        box_(largest_box, stream_.get()) {
    const std::string text = module_text();
    driver::check(gpu_.api(),
                  gpu_.api().cuLibraryLoadData(&library_, text.c_str(), nullptr, nullptr, 0,
                                               nullptr, nullptr, 0),
                  "cuLibraryLoadData");
  }
  ~Machine() { gpu_.api().cuLibraryUnload(library_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::vector<std::byte> run(TensorCopy copy, std::uint64_t seed) {
    std::vector<std::byte> memory = random_bytes(copy.memory_bytes, seed);
    std::vector<std::byte> box = random_bytes(largest_box, ~seed);
    const Buffer tensor(memory.size(), stream_.get());
    gemmery::copy(tensor.data(), device_, memory.data(), Device::cpu(), memory.size(),
                  stream_.get());
    gemmery::copy(box_.data(), device_, box.data(), Device::cpu(), box.size(), stream_.get());
    copy.map.address = reinterpret_cast<std::uintptr_t>(tensor.data());
    launch(copy, encode(copy.map));
    std::vector<std::byte>& result = copy.is_store ? memory : box;
    gemmery::copy(result.data(), Device::cpu(), copy.is_store ? tensor.data() : box_.data(),
                  device_, result.size(), stream_.get());
    synchronize(stream_.get());
    return std::move(result);
  }

  // Random bits; every fourth word a subnormal of float32, which some maps flush.
  static std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
    Random random(seed);
    std::vector<std::byte> bytes(count);
    for (std::size_t at = 0; at + 4 <= count; at += 4) {
      auto word = static_cast<std::uint32_t>(random.next());
      if (word % 4 == 0) word &= 0x807fffff;
      if (word % 32 == 1) word = (word & ~0x1fffU) | 0x1000;  // half way between two of tf32
      std::memcpy(bytes.data() + at, &word, 4);
    }
    return bytes;
  }

  cuda::TensorMap encode(const TensorMapFields& map) const {
    const auto type = static_cast<cuda::TensorMapDataType>(map.element);
    const auto swizzle = static_cast<cuda::TensorMapSwizzle>(map.swizzle);
    const auto fill = map.fills_nan ? cuda::TensorMapOutOfBounds::nan_request_zero_fma
                                    : cuda::TensorMapOutOfBounds::zero;
    auto* const address = reinterpret_cast<void*>(map.address);
    cuda::TensorMap encoded;
    const driver::DriverApi& api = gpu_.api();
    if (map.is_im2col) {
      driver::check(
          api,
          api.cuTensorMapEncodeIm2col(
              &encoded, type, map.rank, address, map.extents.data(), map.byte_strides.data(),
              map.lower_corner.data(), map.upper_corner.data(), map.channels_per_pixel,
              map.pixels_per_column, map.element_strides.data(), cuda::TensorMapInterleave::none,
              swizzle, cuda::TensorMapL2Promotion::none, fill),
          "cuTensorMapEncodeIm2col");
    } else {
      driver::check(
          api,
          api.cuTensorMapEncodeTiled(&encoded, type, map.rank, address, map.extents.data(),
                                     map.byte_strides.data(), map.box.data(),
                                     map.element_strides.data(), cuda::TensorMapInterleave::none,
                                     swizzle, cuda::TensorMapL2Promotion::none, fill),
          "cuTensorMapEncodeTiled");
    }
    return encoded;
  }

  void launch(const TensorCopy& copy, const cuda::TensorMap& map) const {
    cuda::Kernel kernel = nullptr;
    cuda::Function function = nullptr;
    const std::string name = kernel_name(copy);
    driver::check(gpu_.api(), gpu_.api().cuLibraryGetKernel(&kernel, library_, name.c_str()), name);
    driver::check(gpu_.api(), gpu_.api().cuKernelGetFunction(&function, kernel), name);
    void* buffer = box_.data();
    std::uint32_t bytes = emulator::box_bytes(copy.map);
    std::array<std::int32_t, 5> c = copy.coordinates;
    std::array<std::uint16_t, 3> o = copy.offsets;
    void* parameters[] = {const_cast<cuda::TensorMap*>(&map),
                          &buffer,
                          &bytes,
                          &c[0],
                          &c[1],
                          &c[2],
                          &c[3],
                          &c[4],
                          &o[0],
                          &o[1],
                          &o[2]};
    const cuda::LaunchConfig config{.grid_x = 1,
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = threads,
                                    .block_y = 1,
                                    .block_z = 1,
                                    .shared_bytes = 0,
                                    .stream = driver::stream_handle(stream_.get()),
                                    .attributes = nullptr,
                                    .attribute_count = 0};
    driver::check(gpu_.api(), gpu_.api().cuLaunchKernelEx(&config, function, parameters, nullptr),
                  name);
  }

  Device device_;
  const driver::GpuDevice& gpu_;
  driver::ScopedContext current_;
  OwnedStream stream_;
  Buffer box_;
  cuda::Library library_ = nullptr;
};

TensorCopyRunner::TensorCopyRunner(Device device) : machine_(std::make_unique<Machine>(device)) {}
TensorCopyRunner::~TensorCopyRunner() = default;

std::vector<std::byte> TensorCopyRunner::run(const TensorCopy& copy, std::uint64_t seed) {
  return machine_->run(copy, seed);
}

std::uint32_t digest(const std::vector<std::byte>& bytes) {
  std::uint32_t hash = 0x811c9dc5;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint32_t>(byte)) * 0x01000193;
  return hash;
}

}  // namespace gemmery::recording
