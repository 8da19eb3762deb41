// SPDX-License-Identifier: Apache-2.0
// Batches by pointers in a graph: the addresses are read when it runs, so they may change between
// replays.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "driver/graph.hpp"
#include "tests/runtime/hopper_gemm.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::tests {
namespace {

constexpr std::int64_t m = 5;
constexpr std::int64_t n = 40;
constexpr std::int64_t k = 72;
constexpr std::int64_t batches = 3;
constexpr std::size_t sets = 2;  // sets of operands

std::uint16_t bfloat16_of(int value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

// Matrices of small integers, on the host and on the device.
class Matrices {
 public:
  Matrices(std::int64_t elements, std::mt19937& random, Device device, Stream stream) {
    std::uniform_int_distribution<int> digit(-3, 3);
    for (std::size_t at = 0; at < sets * batches; ++at) {
      std::vector<int> numbers(static_cast<std::size_t>(elements));
      for (int& number : numbers) number = digit(random);
      std::vector<std::uint16_t> codes(numbers.size());
      std::ranges::transform(numbers, codes.begin(), bfloat16_of);
      buffers_.emplace_back(codes.size() * sizeof codes[0], stream);
      copy(buffers_.back().data(), device, codes.data(), Device::cpu(), buffers_.back().bytes(),
           stream);
      synchronize(stream);
      values_.push_back(std::move(numbers));
    }
  }

  const std::vector<int>& values(std::size_t set, std::size_t batch) const {
    return values_[set * batches + batch];
  }
  void* address(std::size_t set, std::size_t batch) const {
    return buffers_[set * batches + batch].data();
  }

 private:
  std::vector<std::vector<int>> values_;
  std::vector<Buffer> buffers_;
};

std::vector<float> products(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<float> out(m * n);
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      int sum = 0;
      for (std::int64_t at = 0; at < k; ++at)
        sum += a[static_cast<std::size_t>(row * k + at)] *
               b[static_cast<std::size_t>(at * n + column)];
      out[static_cast<std::size_t>(row * n + column)] = static_cast<float>(sum);
    }
  }
  return out;
}

// Three arrays of addresses on the device, and out, as used by the graph.
struct Batch {
  Batch(std::mt19937& random, Device where, Stream on)
      : device(where),
        stream(on),
        a(m * k, random, where, on),
        b(k * n, random, where, on),
        a_pointers(batches * sizeof(void*), on),
        b_pointers(batches * sizeof(void*), on),
        out(batches * m * n * sizeof(float), on) {}

  void point_to(std::size_t set) const {
    for (const auto& [matrices, pointers] :
         {std::pair{&a, &a_pointers}, std::pair{&b, &b_pointers}}) {
      std::vector<void*> addresses;
      // Each set also has a different order.
      for (std::size_t batch = 0; batch < batches; ++batch)
        addresses.push_back(matrices->address(set, place(set, batch)));
      copy(pointers->data(), device, addresses.data(), Device::cpu(), pointers->bytes(), stream);
      synchronize(stream);
    }
  }

  GemmArguments arguments() const {
    const auto array = [](const Buffer& pointers) {
      return PointerArray{.pointers = static_cast<const void* const*>(pointers.data())};
    };
    return GemmArguments(Tensor(array(a_pointers), DType::bfloat16, {batches, m, k}, device),
                         Tensor(array(b_pointers), DType::bfloat16, {batches, k, n}, device),
                         Tensor(out.data(), DType::float32, {batches, m, n}, device));
  }

  void expect_products_of(std::size_t set) const {
    std::vector<float> got(out.bytes() / sizeof(float));
    copy(got.data(), Device::cpu(), out.data(), device, out.bytes(), stream);
    synchronize(stream);
    for (std::size_t batch = 0; batch < batches; ++batch) {
      const auto expected =
          products(a.values(set, place(set, batch)), b.values(set, place(set, batch)));
      EXPECT_TRUE(std::ranges::equal(expected, std::span(got).subspan(batch * m * n, m * n)))
          << "set " << set << ", matrix " << batch;
    }
  }

  static std::size_t place(std::size_t set, std::size_t batch) { return (batch + set) % batches; }

  Device device;
  Stream stream;
  Matrices a;
  Matrices b;
  Buffer a_pointers;
  Buffer b_pointers;
  Buffer out;
};

TEST_P(HopperGemm, addresses_of_a_batch_may_change_between_replays) {
  std::mt19937 random(static_cast<std::uint32_t>(random_seed()));
  const OwnedStream stream(device());
  const Batch batch(random, device(), stream.get());
  const GemmArguments arguments = batch.arguments();
  std::set<std::string> families;
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    if (kernel.get_workspace_size(arguments) != 0) continue;
    if (!families.insert(std::string(kernel.family().name())).second) continue;
    SCOPED_TRACE(kernel.name());
    kernel.compile(arguments);
    batch.point_to(0);
    driver::GraphCapture capture(stream);
    kernel.run(arguments, {.stream = stream});
    const driver::Graph graph = capture.end();
    for (const std::size_t set : {0, 1, 0}) {
      batch.point_to(set);
      fill(batch.out.data(), 0xff, batch.out.bytes(), stream);
      graph.launch(stream);
      batch.expect_products_of(set);
    }
  }
  for (const char* const family : {"sm80", "simt", "skinny"})
    EXPECT_TRUE(families.contains(family)) << family << " has no kernel without a workspace";
}

}  // namespace
}  // namespace gemmery::tests
