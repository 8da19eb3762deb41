// SPDX-License-Identifier: Apache-2.0
// Runs a Hopper GEMM that gave exact results on an H200 (tests/data/probe/kernel.cuh, unchanged) on
// the emulator, with small integers, so that every element must equal the rounded reference. Under
// GEMMERY_SOAK the size is that of the check on hardware, otherwise smaller.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "tests/emulator/kernel_under_test.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

constexpr const char* kernel_path = "tests/data/probe/kernel.cuh";

enum Kind { bf16 = 1, e4m3 = 2, tf32 = 3, s8 = 4 };

struct Config {
  const char* name;
  Kind kind;
  int bm, bn, stages, cluster, a_mn, b_mn;
  int scheme = 0;
  int swizzle = 128;
  bool odd_out = false;
  int ld_extra = 0;  // padding of rows, in elements

  int element_bytes() const { return kind == bf16 ? 2 : kind == tf32 ? 4 : 1; }
  int out_bytes() const { return kind <= e4m3 ? 2 : 4; }
  bool stores_plainly() const { return scheme == 2 || odd_out; }
  int k_bytes() const { return swizzle != 0 ? swizzle : 128; }
  int pitch() const { return swizzle != 0 ? swizzle : 16; }
  int a_stage_bytes() const { return (bm + 63) / 64 * 64 * k_bytes(); }
  int b_stage_bytes() const {
    return (b_mn != 0 || scheme == 1 ? (bn + 63) / 64 * 64 : bn) * k_bytes();
  }
  int shared_bytes() const {
    return 1024 + stages * (a_stage_bytes() + b_stage_bytes() + 16) + (scheme == 1 ? 0 : 32768);
  }
  bool is_b_along_n() const { return b_mn != 0 || scheme == 1; }
  std::vector<std::string> options() const {
    const auto define = [](const char* macro, int value) {
      return std::string("-D") + macro + "=" + std::to_string(value);
    };
    return {define("KIND", kind),
            define("BM", bm),
            define("BN", bn),
            define("STAGES", stages),
            define("CLUSTER", cluster),
            define("A_MN", a_mn),
            define("B_MN", b_mn),
            define("SCHEME", scheme),
            define("GROUP", 8),
            define("SWIZZLE", swizzle),
            define("ODD_OUT", stores_plainly() ? 1 : 0)};
  }
};
void PrintTo(const Config& config, std::ostream* out) { *out << config.name; }

struct Parameters {
  std::uint64_t a, b, d;
  int m, n, k, lda, ldb, ldd;
};

// --- values -------------------------------------------------------------------------------------

std::uint32_t encode_integer(Kind kind, int value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  switch (kind) {
    case bf16:
      return bits >> 16;
    case tf32:
      return bits;
    case s8:
      return static_cast<std::uint8_t>(value);
    case e4m3: {  // of -3 … 3
      constexpr std::array<std::uint8_t, 4> magnitudes{0x00, 0x38, 0x40, 0x44};
      return static_cast<std::uint32_t>(magnitudes[static_cast<std::size_t>(std::abs(value))] |
                                        (value < 0 ? 0x80 : 0));
    }
  }
  return 0;
}

// The reference is an integer below 2^24.
std::uint32_t encode_result(Kind kind, int value) {
  if (kind == s8) return static_cast<std::uint32_t>(value);
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (kind == tf32) return bits;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// --- one product --------------------------------------------------------------------------------

class Product {
 public:
  Product(const Config& config, int m, int n, int k)
      : config_(config),
        kernel_(compile_file_to_ptx(kernel_path, "gemm", config.options()), "gemm"),
        m_(m),
        n_(n),
        k_(k),
        lda_((config.a_mn != 0 ? m : k) + config.ld_extra),
        ldb_((config.is_b_along_n() ? n : k) + config.ld_extra),
        ldd_(n + config.ld_extra),
        a_(static_cast<std::size_t>(m * k)),
        b_(static_cast<std::size_t>(n * k)) {
    std::mt19937_64 random(tests::random_seed());
    for (std::vector<int>* const values : {&a_, &b_}) {
      for (int& value : *values) value = static_cast<int>(random() % 7) - 3;
    }
  }

  void run(std::uint64_t schedule) {
    const std::uint64_t a = put(a_, m_, config_.a_mn != 0, lda_);
    const std::uint64_t b = put(b_, n_, config_.is_b_along_n(), ldb_);
    const std::vector<std::byte> poison(
        static_cast<std::size_t>(((m_ - 1) * ldd_ + n_) * config_.out_bytes()), std::byte{0xff});
    const std::uint64_t d = kernel_.put(poison);
    kernel_.request.seed = schedule;
    // Few CTAs, so that each computes several tiles.
    const auto cluster = static_cast<std::uint32_t>(config_.cluster != 0 ? 2 : 1);
    kernel_.request.grid = {2 * cluster, 1, 1};
    kernel_.request.block = {config_.scheme == 2 ? 512u : 384u, 1, 1};
    kernel_.request.cluster = {cluster, 1, 1};
    kernel_.request.dynamic_shared_bytes = static_cast<std::uint32_t>(config_.shared_bytes());
    const std::optional<Fault> fault = kernel_.launch(
        map_a(a), map_b(b), map_d(d), Parameters{a, b, d, m_, n_, k_, lda_, ldb_, ldd_});
    ASSERT_FALSE(fault.has_value()) << fault->report();
    EXPECT_EQ(count_wrong(d), 0);
  }

 private:
  // Rows of the operand are contiguous along K, or (`is_turned`) its columns are.
  std::uint64_t put(const std::vector<int>& values, int rows, bool is_turned, int ld) {
    const int bytes = config_.element_bytes();
    const int outer = is_turned ? k_ : rows, inner = is_turned ? rows : k_;
    // The producer without TMA loads whole aligned 16-byte words, the last of which may reach
    // beyond the matrix: hardware allows it, the checker does not, so that its memory is rounded
    // up.
    const int used = ((outer - 1) * ld + inner) * bytes;
    const int size = config_.scheme == 2 ? (outer * ld * bytes + 31) / 16 * 16 : used;
    std::vector<std::byte> memory(static_cast<std::size_t>(size), std::byte{0x7f});
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < k_; ++k) {
        const std::uint32_t bits =
            encode_integer(config_.kind, values[static_cast<std::size_t>(row * k_ + k)]);
        const int at = is_turned ? k * ld + row : row * ld + k;
        std::memcpy(memory.data() + at * bytes, &bits, static_cast<std::size_t>(bytes));
      }
    }
    return kernel_.put(memory);
  }

  TensorMapBytes map(std::uint64_t address, bool is_out, int inner, int outer, int ld,
                     int box_inner, int box_outer) const {
    const int bytes = is_out ? config_.out_bytes() : config_.element_bytes();
    const MapElement element = bytes == 2           ? MapElement::bf16
                               : bytes == 1         ? MapElement::u8
                               : config_.kind == s8 ? MapElement::s32
                                                    : MapElement::f32;
    const int span = box_inner * bytes;
    return map_2d(address, element, static_cast<std::uint64_t>(outer),
                  static_cast<std::uint64_t>(inner), static_cast<std::uint64_t>(ld * bytes),
                  static_cast<std::uint32_t>(box_outer), static_cast<std::uint32_t>(box_inner),
                  span == 128 || span == 64 || span == 32 ? static_cast<std::uint32_t>(span) : 0);
  }
  TensorMapBytes map_a(std::uint64_t a) const {
    if (config_.scheme == 2) return {};
    const int atom = config_.pitch() / config_.element_bytes();
    const int bk = config_.k_bytes() / config_.element_bytes();
    const bool is_shared = config_.cluster == 2;
    if (config_.a_mn != 0) return map(a, false, m_, k_, lda_, atom, is_shared ? bk / 2 : bk);
    return map(a, false, k_, m_, lda_, atom, is_shared ? config_.bm / 2 : config_.bm);
  }
  TensorMapBytes map_b(std::uint64_t b) const {
    if (config_.scheme == 2) return {};
    const int atom = config_.pitch() / config_.element_bytes();
    const int bk = config_.k_bytes() / config_.element_bytes();
    const bool is_shared = config_.cluster == 1;
    if (config_.scheme == 1) return map(b, false, n_, k_, ldb_, 128, 128);
    if (config_.b_mn != 0) return map(b, false, n_, k_, ldb_, atom, is_shared ? bk / 2 : bk);
    return map(b, false, k_, n_, ldb_, atom, is_shared ? config_.bn / 2 : config_.bn);
  }
  TensorMapBytes map_d(std::uint64_t d) const {
    if (config_.scheme != 0 || config_.stores_plainly()) return {};
    const int columns = config_.out_bytes() == 4 ? 32
                        : config_.bn % 64 == 0   ? 64
                        : config_.bn % 32 == 0   ? 32
                                                 : 16;
    return map(d, true, n_, m_, ldd_, columns, 64);
  }

  long count_wrong(std::uint64_t d) const {
    const auto bytes = static_cast<std::size_t>(config_.out_bytes());
    const auto memory = kernel_.get<std::byte>(
        d, (static_cast<std::size_t>((m_ - 1) * ldd_) + static_cast<std::size_t>(n_)) * bytes);
    long wrong = 0;
    for (int row = 0; row < m_; ++row) {
      for (int column = 0; column < n_; ++column) {
        int sum = 0;
        const int* const a = a_.data() + row * k_;
        const int* const b = b_.data() + column * k_;
        for (int k = 0; k < k_; ++k) sum += a[k] * b[k];
        std::uint32_t got = 0;
        std::memcpy(&got, memory.data() + static_cast<std::size_t>(row * ldd_ + column) * bytes,
                    bytes);
        wrong += got != encode_result(config_.kind, sum);
      }
    }
    return wrong;
  }

  Config config_;
  KernelUnderTest kernel_;
  int m_, n_, k_, lda_, ldb_, ldd_;
  std::vector<int> a_, b_;
};

class Probe : public testing::TestWithParam<Config> {};

TEST_P(Probe, is_exact_on_integers) {
  const Config& config = GetParam();
  const bool is_soak = std::getenv("GEMMERY_SOAK") != nullptr;
  const int step = config.kind == e4m3 || config.kind == s8 ? 16 : 8;
  const auto rounded = [step](int size) { return (size + step - 1) / step * step; };
  const int odd = config.scheme == 2 || config.ld_extra % 2 != 0 ? 1 : 0;
  const auto start = std::chrono::steady_clock::now();
  Product product(config, is_soak ? rounded(1000) : rounded(200) - odd,
                  is_soak ? rounded(1016) : rounded(328) - odd,
                  is_soak ? rounded(520) : rounded(136) - odd);
  product.run(tests::random_seed());
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_LE(elapsed.count(), 20.0);
  std::printf("%s: %.2f s\n", config.name, elapsed.count());
}

INSTANTIATE_TEST_SUITE_P(
    Each, Probe,
    testing::Values(Config{"bf16_rc", bf16, 128, 256, 4, 0, 0, 0},
                    Config{"bf16_rr", bf16, 128, 256, 4, 0, 0, 1},
                    Config{"bf16_cc", bf16, 128, 256, 4, 0, 1, 0},
                    Config{"bf16_cr", bf16, 128, 256, 4, 0, 1, 1},
                    Config{"bf16_rc_shares_b", bf16, 128, 256, 4, 1, 0, 0},
                    Config{"bf16_rr_shares_b", bf16, 128, 256, 4, 1, 0, 1},
                    Config{"bf16_cc_shares_a", bf16, 256, 128, 4, 2, 1, 0},
                    Config{"bf16_cr_shares_a", bf16, 256, 128, 4, 2, 1, 1},
                    Config{"bf16_rc_shares_a", bf16, 256, 128, 4, 2, 0, 0},
                    Config{"bf16_192_columns", bf16, 128, 192, 4, 1, 0, 1},
                    Config{"bf16_208_columns", bf16, 128, 208, 4, 1, 0, 1},
                    Config{"bf16_swizzle_64", bf16, 128, 256, 3, 0, 0, 0, 0, 64},
                    Config{"bf16_swizzle_64_turned", bf16, 256, 192, 3, 0, 1, 1, 0, 64},
                    Config{"bf16_swizzle_32", bf16, 128, 256, 3, 0, 0, 0, 0, 32},
                    Config{"bf16_swizzle_32_turned", bf16, 256, 192, 3, 0, 1, 1, 0, 32},
                    Config{"bf16_no_swizzle", bf16, 128, 256, 3, 0, 0, 0, 0, 0},
                    Config{"bf16_no_swizzle_turned", bf16, 256, 192, 3, 0, 1, 1, 0, 0},
                    Config{"e4m3", e4m3, 128, 256, 4, 0, 0, 0},
                    Config{"e4m3_shares_a", e4m3, 256, 128, 4, 2, 0, 0},
                    Config{"tf32", tf32, 128, 256, 4, 0, 0, 0},
                    Config{"tf32_shares_b", tf32, 128, 192, 4, 1, 0, 0},
                    Config{"s8", s8, 128, 256, 4, 0, 0, 0},
                    Config{"s8_shares_b", s8, 256, 192, 3, 1, 0, 0},
                    Config{"s8_transposing", s8, 128, 256, 4, 0, 0, 0, 1},
                    Config{"e4m3_transposing", e4m3, 128, 256, 4, 0, 0, 0, 1},
                    Config{"bf16_odd_out", bf16, 128, 256, 4, 0, 0, 0, 0, 128, true},
                    Config{"bf16_odd_leading_dimensions", bf16, 128, 192, 4, 0, 0, 0, 2, 128, false,
                           3}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace gemmery::emulator
