// SPDX-License-Identifier: Apache-2.0
// The bytes of artifact files: written files are read, all others are refused.
#include "runtime/artifact_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

#include "platform/private_folder.hpp"
#include "platform/whole_file.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::runtime {
namespace {

using tests::error_of;

using Bytes = std::vector<std::byte>;
using tests::random_seed;

bool is_soak() { return std::getenv("GEMMERY_SOAK") != nullptr; }

// The smallest cubin: an ELF header for a GPU without sections.
Bytes small_cubin(std::size_t bytes) {
  Bytes cubin(bytes);
  std::memcpy(cubin.data(), "\177ELF\2\1", 6);
  cubin[18] = std::byte{190};
  cubin[40] = std::byte{64};
  return cubin;
}

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : generator_(seed) {}
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
  }
  std::string word() {
    std::string text(below(20), ' ');
    for (char& letter : text) letter = static_cast<char>('a' + below(26));
    return text;
  }
  jit::CompiledCode code(bool is_ptx, const std::string& entry) {
    jit::CompiledCode code;
    if (is_ptx) code.ptx = ".version 9.0\n.visible .entry " + entry + "()\n";
    if (!is_ptx) code.cubin = small_cubin(64 + below(100));
    code.log = word();
    code.usage = {static_cast<int>(below(255)), static_cast<int>(below(1000)), 1, 2, 3};
    code.compile_ms = static_cast<double>(below(1000)) / 8;
    return code;
  }

 private:
  std::mt19937_64 generator_;
};

StoredKernel random_kernel(Numbers& numbers) {
  StoredKernel kernel;
  kernel.provider = numbers.word();
  kernel.family = numbers.word();
  kernel.family_version = static_cast<std::uint32_t>(numbers.below(100));
  kernel.kernel_name = numbers.word();
  kernel.target = numbers.below(2) == 0 ? Target{90, 'a'} : Target{80, 0};
  for (std::size_t field = numbers.below(4); field > 0; --field)
    kernel.design.push_back({numbers.word(), numbers.word()});
  kernel.epilogue = "D = alpha * accum\n + beta * C";
  for (std::size_t operand = numbers.below(3); operand > 0; --operand)
    kernel.epilogue_operands.push_back({numbers.word(), 13, "float16", 2, 8});
  for (std::size_t problem = numbers.below(3); problem > 0; --problem)
    kernel.problems.push_back(numbers.word());
  kernel.source = "// \xc3\xa9\n" + numbers.word();
  kernel.entry = "entry";
  if (numbers.below(3) > 0) kernel.cubin = numbers.code(false, kernel.entry);
  if (!kernel.cubin || numbers.below(2) > 0) kernel.ptx = numbers.code(true, kernel.entry);
  return kernel;
}

ArtifactFile random_file(Numbers& numbers) {
  ArtifactFile file{.library_version = "0.1.0", .abi_digest = "0123", .kernels = {}};
  for (std::size_t kernel = numbers.below(4); kernel > 0; --kernel)
    file.kernels.push_back(random_kernel(numbers));
  return file;
}

void expect_equal(const std::optional<jit::CompiledCode>& one,
                  const std::optional<jit::CompiledCode>& other) {
  ASSERT_EQ(one.has_value(), other.has_value());
  if (!one) return;
  EXPECT_EQ(one->cubin, other->cubin);
  EXPECT_EQ(one->ptx, other->ptx);
  EXPECT_EQ(one->log, other->log);
  EXPECT_EQ(one->usage, other->usage);
  EXPECT_EQ(one->compile_ms, other->compile_ms);
}

void expect_equal(const StoredKernel& one, const StoredKernel& other) {
  EXPECT_EQ(one.provider, other.provider);
  EXPECT_EQ(one.family, other.family);
  EXPECT_EQ(one.family_version, other.family_version);
  EXPECT_EQ(one.kernel_name, other.kernel_name);
  EXPECT_EQ(one.target, other.target);
  EXPECT_EQ(one.design, other.design);
  EXPECT_EQ(one.epilogue, other.epilogue);
  EXPECT_EQ(one.epilogue_operands, other.epilogue_operands);
  EXPECT_EQ(one.problems, other.problems);
  EXPECT_EQ(one.source, other.source);
  EXPECT_EQ(one.entry, other.entry);
  expect_equal(one.cubin, other.cubin);
  expect_equal(one.ptx, other.ptx);
}

// The error for bytes; nothing if they are accepted.
std::optional<Error> refusal_of(const Bytes& bytes) {
  try {
    (void)decode(bytes, "a file.gemmery");
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

void expect_refused(const Bytes& bytes, const std::string& what) {
  const std::optional<Error> error = refusal_of(bytes);
  ASSERT_TRUE(error) << what << ", seed " << random_seed();
  EXPECT_NE(error->operand().find("a file.gemmery"), std::string::npos) << error->what();
  EXPECT_TRUE(error->kind() == ErrorKind::io || error->kind() == ErrorKind::unsupported)
      << error->what();
}

TEST(ArtifactFile, what_is_written_is_read) {
  Numbers numbers(random_seed());
  for (int round = 0; round < 200; ++round) {
    const ArtifactFile file = random_file(numbers);
    const ArtifactFile read = decode(encode(file), "a file.gemmery");
    EXPECT_EQ(read.library_version, file.library_version);
    EXPECT_EQ(read.abi_digest, file.abi_digest);
    ASSERT_EQ(read.kernels.size(), file.kernels.size()) << "seed " << random_seed();
    for (std::size_t index = 0; index < file.kernels.size(); ++index)
      expect_equal(read.kernels[index], file.kernels[index]);
  }
}

TEST(ArtifactFile, begins_with_its_mark_and_numbers_that_are_little_endian) {
  const Bytes bytes = encode({.library_version = "1", .abi_digest = "2", .kernels = {}});
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), 24);
  EXPECT_EQ(text.substr(0, 8), "\x89gemmery");
  EXPECT_EQ(text.substr(8, 8), std::string_view("\1\0\0\0\x40\0\0\0", 8));
  EXPECT_EQ(static_cast<std::size_t>(text[16]), bytes.size());
}

TEST(ArtifactFile, every_changed_byte_is_refused) {
  Numbers numbers(random_seed());
  ArtifactFile file{.library_version = "0.1.0", .abi_digest = "0123", .kernels = {}};
  for (int kernel = 0; kernel < 3; ++kernel) file.kernels.push_back(random_kernel(numbers));
  Bytes bytes = encode(file);
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    const std::byte before = bytes[place];
    for (const int flip : {1, 128, static_cast<int>(1 + numbers.below(255))}) {
      bytes[place] = before ^ static_cast<std::byte>(flip);
      expect_refused(bytes, "byte " + std::to_string(place));
    }
    bytes[place] = before;
  }
  EXPECT_FALSE(refusal_of(bytes));
}

TEST(ArtifactFile, every_truncation_and_every_byte_more_is_refused) {
  Numbers numbers(random_seed());
  ArtifactFile file{.library_version = "0.1.0", .abi_digest = "0123", .kernels = {}};
  file.kernels.push_back(random_kernel(numbers));
  const Bytes bytes = encode(file);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    expect_refused(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)),
                   std::to_string(size) + " bytes");
  Bytes longer = bytes;
  longer.push_back(std::byte{0});
  expect_refused(longer, "a byte more");
}

// Changes with a valid checksum are refused, with the field, or decode to a file that encodes to
// the same bytes.
TEST(ArtifactFile, changed_bytes_under_a_right_checksum_are_refused_or_make_sense) {
  Numbers numbers(random_seed());
  const int rounds = is_soak() ? 300'000 : 6'000;
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    Bytes bytes = encode(random_file(numbers));
    constexpr std::size_t header_bytes = 64;
    for (std::size_t edits = 1 + numbers.below(3); edits > 0; --edits) {
      const std::size_t place = 24 + numbers.below(bytes.size() - 24);
      switch (numbers.below(4)) {
        case 0:
          bytes[place] = static_cast<std::byte>(numbers.below(256));
          break;
        case 1:
          bytes[place] = std::byte{0xff};
          break;
        case 2:
          bytes.resize(std::max(header_bytes, place));
          break;
        default:
          bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(std::max(place, header_bytes)),
                       1 + numbers.below(9), std::byte{0});
      }
    }
    seal(bytes);
    try {
      const ArtifactFile file = decode(bytes, "a file.gemmery");
      EXPECT_EQ(encode(file), bytes) << "seed " << random_seed();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds / 4);
}

struct Damage {
  const char* field;  // the field in the error
  void (*apply)(StoredKernel& kernel);
};

TEST(ArtifactFile, fields_out_of_range_are_refused_by_their_name) {
  constexpr Damage damages[] = {
      {"kernel name", [](StoredKernel& k) { k.kernel_name = "a\nb"; }},
      {"kernel name", [](StoredKernel& k) { k.kernel_name = std::string(5000, 'x'); }},
      {"provider", [](StoredKernel& k) { k.provider = std::string("a\0b", 3); }},
      {"family version", [](StoredKernel& k) { k.family_version = 0xffffffff; }},
      {"target",
       [](StoredKernel& k) {
         k.target = {90, 'x'};
       }},
      {"target",
       [](StoredKernel& k) {
         k.target = {80, 'a'};
       }},
      {"target", [](StoredKernel& k) { k.target = Target::cpu(); }},
      {"registers", [](StoredKernel& k) { k.cubin->usage.registers = -1; }},
      {"static shared bytes", [](StoredKernel& k) { k.cubin->usage.static_shared_bytes = -1; }},
      {"compile time", [](StoredKernel& k) { k.cubin->compile_ms = -1; }},
      {"cubin", [](StoredKernel& k) { k.cubin->cubin.resize(10); }},
      {"cubin", [](StoredKernel& k) { k.cubin->cubin[18] = std::byte{62}; }},
      {"cubin",
       [](StoredKernel& k) { k.cubin->cubin[45] = std::byte{1}; }},  // its table of sections
      {"cubin", [](StoredKernel& k) { k.cubin->ptx = "x"; }},
      {"code", [](StoredKernel& k) { k.cubin.reset(); }},
      {"PTX", [](StoredKernel& k) { k.ptx = jit::CompiledCode{}; }},
      {"operand's dtype",
       [](StoredKernel& k) {
         k.epilogue_operands.push_back({"bias", 1, "float17", 0, 1});
       }},
      {"operand's flags",
       [](StoredKernel& k) {
         k.epilogue_operands.push_back({"bias", 64, "float16", 0, 1});
       }},
      {"operand's alignment",
       [](StoredKernel& k) {
         k.epilogue_operands.push_back({"bias", 1, "float16", 0, 3});
       }},
      {"operand's adjacent index",
       [](StoredKernel& k) {
         k.epilogue_operands.push_back({"bias", 1, "float16", 3, 1});
       }},
  };
  for (const Damage& damage : damages) {
    Numbers numbers(random_seed());
    StoredKernel kernel = random_kernel(numbers);
    kernel.kernel_name = "kernel";
    kernel.cubin = numbers.code(false, kernel.entry);
    kernel.ptx.reset();
    damage.apply(kernel);
    const std::optional<Error> error =
        refusal_of(encode({.library_version = "1", .abi_digest = "2", .kernels = {kernel}}));
    ASSERT_TRUE(error) << damage.field;
    EXPECT_TRUE(error->operand().ends_with(damage.field)) << error->what();
  }
}

TEST(ArtifactFile, another_format_version_is_unsupported_not_damage) {
  Bytes bytes = encode({.library_version = "1", .abi_digest = "2", .kernels = {}});
  bytes[8] = std::byte{2};
  seal(bytes);
  const std::optional<Error> error = refusal_of(bytes);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::unsupported);
  EXPECT_EQ(error->got(), "format 2");
}

// --- files --------------------------------------------------------------------------------------

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(WholeFile, is_replaced_as_a_whole_and_nothing_is_left_beside_it) {
  const platform::PrivateFolder folder("gemmery-files");
  const std::string path = folder.path() + "/a file";
  platform::write_whole_file(path, bytes_of("first"));
  platform::write_whole_file(path, bytes_of("second"));
  EXPECT_EQ(platform::read_whole_file(path, 100), bytes_of("second"));
  EXPECT_EQ(folder.read("a file"), "second");
  platform::write_whole_file(path, {});
  EXPECT_TRUE(platform::read_whole_file(path, 100).empty());
}

TEST(WholeFile, what_is_no_file_or_cannot_be_written_is_refused_by_its_path) {
  const platform::PrivateFolder folder("gemmery-files");
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  folder.write("long", "0123456789");
  for (const std::string& path :
       {folder.path(), pipe, folder.path() + "/none", folder.path() + "/long"}) {
    const Error error = error_of([&] { (void)platform::read_whole_file(path, 5); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.operand(), path);
  }
  for (const std::string& path : {folder.path(), folder.path() + "/none/file"}) {
    const Error error = error_of([&] { platform::write_whole_file(path, bytes_of("x")); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.operand(), path);
  }
}

}  // namespace
}  // namespace gemmery::runtime
