// SPDX-License-Identifier: Apache-2.0
// Writes and reads the bytes of artifact files.
#include "runtime/artifact_file.hpp"

#include <gemmery/dtype.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <xxhash.h>

namespace gemmery::runtime {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::array<char, 8> magic{'\x89', 'g', 'e', 'm', 'm', 'e', 'r', 'y'};
constexpr std::size_t size_place = 16;
constexpr std::size_t checksum_place = 32;
constexpr std::size_t checksum_bytes = 16;
constexpr std::size_t header_bytes = 64;
constexpr std::size_t most_name_bytes = 1024;  // for names of kernels, families, operands

// --- writing ------------------------------------------------------------------------------------

class Writer {
 public:
  template <class Number>
  void number(Number value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t byte = 0; byte < sizeof(Number); ++byte)
      bytes_.push_back(static_cast<std::byte>(bits >> (8 * byte)));
  }
  void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void raw(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void block(Bytes bytes) {
    number<std::uint64_t>(bytes.size());
    raw(bytes);
  }
  void text(std::string_view text) { block(std::as_bytes(std::span(text))); }

  std::vector<std::byte>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

void write_usage(const jit::CodeUsage& usage, Writer& writer) {
  for (const jit::UsageField& field : jit::usage_fields)
    writer.number(static_cast<std::uint32_t>(usage.*field.value));
}

void write_code(const std::optional<jit::CompiledCode>& code, Writer& writer) {
  writer.number<std::uint8_t>(code ? 1 : 0);
  if (!code) return;
  writer.block(code->cubin);
  writer.text(code->ptx);
  writer.text(code->log);
  write_usage(code->usage, writer);
  writer.real(code->compile_ms);
}

void write_operand(const StoredOperand& operand, Writer& writer) {
  writer.text(operand.name);
  writer.number(operand.flags);
  writer.text(operand.dtype);
  writer.number(operand.adjacent);
  writer.number(operand.alignment);
}

std::vector<std::byte> encode(const StoredKernel& kernel) {
  Writer writer;
  writer.text(kernel.provider);
  writer.text(kernel.family);
  writer.number(kernel.family_version);
  writer.text(kernel.kernel_name);
  writer.number(kernel.target.architecture);
  writer.number(static_cast<std::uint8_t>(kernel.target.suffix));
  writer.number<std::uint64_t>(kernel.design.size());
  for (const StoredField& field : kernel.design) {
    writer.text(field.name);
    writer.text(field.value);
  }
  writer.text(kernel.epilogue);
  writer.number<std::uint64_t>(kernel.epilogue_operands.size());
  for (const StoredOperand& operand : kernel.epilogue_operands) write_operand(operand, writer);
  writer.number<std::uint64_t>(kernel.problems.size());
  for (const std::string& problem : kernel.problems) writer.text(problem);
  writer.text(kernel.source);
  writer.text(kernel.entry);
  write_code(kernel.cubin, writer);
  write_code(kernel.ptx, writer);
  return std::move(writer.bytes());
}

// The checksum of all bytes except the checksum itself.
std::array<std::byte, checksum_bytes> checksum_of(Bytes file) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, file.data(), checksum_place);
  const Bytes rest = file.subspan(checksum_place + checksum_bytes);
  XXH3_128bits_update(&state, rest.data(), rest.size());
  XXH128_canonical_t canonical;  // the same bytes on every machine
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
  std::array<std::byte, checksum_bytes> result;
  std::memcpy(result.data(), canonical.digest, result.size());
  return result;
}

// --- reading ------------------------------------------------------------------------------------

// Reads fields from the front of a range of bytes. An error names the field that does not fit.
class Reader {
 public:
  Reader(Bytes bytes, std::string path, std::size_t origin = 0)
      : bytes_(bytes), path_(std::move(path)), origin_(origin) {}

  [[noreturn]] void refuse(std::string_view field, std::string expected, std::string got) const {
    throw Error({.kind = ErrorKind::io,
                 .operand = fmt::format(
                     "{}, {}", path_,
                     subject_.empty() ? std::string(field) : subject_ + ", " + std::string(field)),
                 .expected = std::move(expected),
                 .got = fmt::format("{} before byte {}", got, origin_ + done_),
                 .hint = "the file is damaged or was made by something else; make it again"});
  }

  Bytes raw(std::string_view field, std::uint64_t count) {
    const std::size_t left = bytes_.size() - done_;
    if (count > left)
      refuse(field, fmt::format("{} bytes", count), fmt::format("{} bytes that are left", left));
    const Bytes result = bytes_.subspan(done_, static_cast<std::size_t>(count));
    done_ += result.size();
    return result;
  }

  template <class Number>
  Number number(std::string_view field) {
    std::uint64_t bits = 0;
    std::size_t place = 0;
    for (const std::byte byte : raw(field, sizeof(Number)))
      bits |= std::to_integer<std::uint64_t>(byte) << (8 * place++);
    return static_cast<Number>(bits);
  }

  template <class Number>
  Number number_up_to(std::string_view field, Number most) {
    const Number value = number<Number>(field);
    if (value > most) refuse(field, fmt::format("at most {}", most), fmt::format("{}", value));
    return value;
  }

  Bytes block(std::string_view field) { return raw(field, number<std::uint64_t>(field)); }

  std::string text(std::string_view field) {
    const Bytes bytes = block(field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // A name: no control characters, of limited length.
  std::string name(std::string_view field) {
    std::string text = this->text(field);
    const auto is_odd = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    if (text.size() > most_name_bytes || std::ranges::any_of(text, is_odd))
      refuse(field, fmt::format("at most {} printable characters", most_name_bytes), "other text");
    return text;
  }

  // Reads as many items as the file states. Each needs at least one byte, so that no count can
  // reserve more memory than the file has bytes.
  template <class Take>
  auto list(std::string_view field, Take&& take) {
    const auto count = number<std::uint64_t>(field);
    if (count > bytes_.size() - done_)
      refuse(field, "a count of what follows", fmt::format("{}", count));
    std::vector<decltype(take())> items;
    for (std::uint64_t index = 0; index < count; ++index) items.push_back(take());
    return items;
  }

  void expect_end(std::string_view field) const {
    if (done_ == bytes_.size()) return;
    refuse(field, "nothing behind it", fmt::format("{} bytes", bytes_.size() - done_));
  }

  std::size_t place() const noexcept { return origin_ + done_; }
  const std::string& path() const noexcept { return path_; }
  void set_subject(std::string subject) { subject_ = std::move(subject); }

 private:
  Bytes bytes_;
  std::string path_;
  std::string subject_;  // the kernel that the fields belong to
  std::size_t origin_;
  std::size_t done_ = 0;
};

jit::CodeUsage read_usage(Reader& reader) {
  jit::CodeUsage usage;
  for (const jit::UsageField& field : jit::usage_fields) {
    const auto most = static_cast<std::uint32_t>(field.most);
    usage.*field.value = static_cast<int>(reader.number_up_to<std::uint32_t>(field.name, most));
  }
  return usage;
}

std::optional<jit::CompiledCode> read_code(Reader& reader, std::string_view form) {
  if (reader.number_up_to<std::uint8_t>(form, 1) == 0) return std::nullopt;
  jit::CompiledCode code;
  const Bytes cubin = reader.block("cubin");
  code.cubin.assign(cubin.begin(), cubin.end());
  code.ptx = reader.text("PTX");
  code.log = reader.text("log");
  code.usage = read_usage(reader);
  code.compile_ms = std::bit_cast<double>(reader.number<std::uint64_t>("compile time"));
  const bool is_time = code.compile_ms >= 0 && code.compile_ms < 1e12;
  if (!is_time) reader.refuse("compile time", "milliseconds", fmt::format("{}", code.compile_ms));
  return code;
}

template <class Number>
Number number_at(Bytes bytes, std::size_t place) {
  Number value;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

// True if this is an ELF file for NVIDIA GPUs whose section table lies within it.
bool is_cubin(Bytes bytes) {
  constexpr std::size_t elf_header_bytes = 64;
  constexpr std::uint16_t cuda_machine = 190;  // EM_CUDA
  if (bytes.size() < elf_header_bytes || std::memcmp(bytes.data(), "\177ELF\2\1", 6) != 0)
    return false;
  const auto machine = number_at<std::uint16_t>(bytes, 18);
  const auto table = number_at<std::uint64_t>(bytes, 40);
  const auto entry_bytes = number_at<std::uint16_t>(bytes, 58);
  const auto entries = number_at<std::uint16_t>(bytes, 60);
  return machine == cuda_machine && table <= bytes.size() &&
         std::uint64_t{entry_bytes} * entries <= bytes.size() - table;
}

void check_codes(const StoredKernel& kernel, const Reader& reader) {
  if (!kernel.cubin && !kernel.ptx) reader.refuse("code", "a cubin or PTX", "neither");
  if (kernel.cubin && (!is_cubin(kernel.cubin->cubin) || !kernel.cubin->ptx.empty()))
    reader.refuse("cubin", "machine code of a GPU", "something else");
  if (!kernel.ptx) return;
  const std::string& ptx = kernel.ptx->ptx;
  const bool has_entry = ptx.find(".entry " + kernel.entry) != std::string::npos;
  if (!kernel.ptx->cubin.empty() || !has_entry || ptx.find('\0') != std::string::npos)
    reader.refuse("PTX", "the text of a module with the entry " + kernel.entry, "something else");
}

Target read_target(Reader& reader) {
  const auto architecture = reader.number<std::uint16_t>("target");
  const auto suffix = static_cast<char>(reader.number<std::uint8_t>("target"));
  const bool is_known_suffix = suffix == 0 || suffix == 'a' || suffix == 'f';
  const Target target{architecture, suffix};
  try {
    if (is_known_suffix && !target.is_cpu() && parse_target(to_string(target)) == target)
      return target;
  } catch (const Error&) {
    // refused below, by the name of the file
  }
  reader.refuse("target", "that of a GPU",
                fmt::format("{} with suffix {}", architecture, static_cast<int>(suffix)));
}

StoredOperand read_operand(Reader& reader) {
  StoredOperand operand;
  operand.name = reader.name("operand of the epilogue");
  operand.flags = reader.number_up_to<std::uint8_t>("operand's flags", 63);
  operand.dtype = reader.name("operand's dtype");
  if (!parse_dtype(operand.dtype))
    reader.refuse("operand's dtype", "the name of a dtype", operand.dtype);
  operand.adjacent = reader.number_up_to<std::uint8_t>("operand's adjacent index", 2);
  operand.alignment = reader.number_up_to<std::uint8_t>("operand's alignment", 16);
  if (!std::has_single_bit(operand.alignment))
    reader.refuse("operand's alignment", "1, 2, 4, 8 or 16", fmt::format("{}", operand.alignment));
  return operand;
}

StoredKernel read_kernel(Reader& reader) {
  StoredKernel kernel;
  kernel.provider = reader.name("provider");
  kernel.family = reader.name("family");
  kernel.family_version = reader.number_up_to<std::uint32_t>("family version", 1'000'000);
  kernel.kernel_name = reader.name("kernel name");
  reader.set_subject(kernel.kernel_name);
  kernel.target = read_target(reader);
  kernel.design = reader.list("fields of the design", [&] {
    return StoredField{reader.name("field of the design"), reader.name("field of the design")};
  });
  kernel.epilogue = reader.text("epilogue");
  kernel.epilogue_operands =
      reader.list("operands of the epilogue", [&] { return read_operand(reader); });
  kernel.problems = reader.list("problems", [&] { return reader.text("problem"); });
  kernel.source = reader.text("source");
  kernel.entry = reader.name("entry");
  kernel.cubin = read_code(reader, "cubin");
  kernel.ptx = read_code(reader, "PTX");
  check_codes(kernel, reader);
  reader.expect_end("end");
  return kernel;
}

void check_header(Bytes bytes, Reader& reader) {
  if (bytes.size() < magic.size() || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    reader.refuse("first bytes", "an artifact file", "something else");
  (void)reader.raw("first bytes", magic.size());
  const auto version = reader.number<std::uint32_t>("format version");
  if (version != artifact_format_version) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = reader.path(),
                 .expected = fmt::format("an artifact file of format {}", artifact_format_version),
                 .got = fmt::format("format {}", version),
                 .hint = "compile the kernels again with this version of gemmery, or use the one "
                         "that made the file"});
  }
  const auto header = reader.number<std::uint32_t>("header bytes");
  if (header != header_bytes)
    reader.refuse("header bytes", fmt::format("{}", header_bytes), fmt::format("{}", header));
  const auto all_bytes = reader.number<std::uint64_t>("size");
  if (all_bytes != bytes.size()) {
    reader.refuse("size", fmt::format("{} bytes", all_bytes),
                  fmt::format("{}, {}", bytes.size(),
                              bytes.size() < all_bytes ? "cut off" : "with more behind them"));
  }
}

void check_checksum(Bytes bytes, Reader& reader) {
  const Bytes stated = reader.raw("checksum", checksum_bytes);
  if (!std::ranges::equal(stated, checksum_of(bytes)))
    reader.refuse("checksum", "that of the bytes", "another");
  for (const std::byte zero : reader.raw("header", header_bytes - reader.place())) {
    if (zero != std::byte{0}) reader.refuse("header", "zeros", "something else");
  }
}

}  // namespace

std::vector<std::byte> encode(const ArtifactFile& file) {
  Writer body;
  body.text(file.library_version);
  body.text(file.abi_digest);
  for (const StoredKernel& kernel : file.kernels) body.block(encode(kernel));

  Writer whole;
  whole.raw(std::as_bytes(std::span(magic)));
  whole.number(artifact_format_version);
  whole.number(static_cast<std::uint32_t>(header_bytes));
  whole.number<std::uint64_t>(0);  // the size, which `seal` writes
  whole.number<std::uint64_t>(file.kernels.size());
  whole.bytes().resize(header_bytes);
  whole.raw(body.bytes());
  seal(whole.bytes());
  return std::move(whole.bytes());
}

void seal(std::span<std::byte> file) {
  Writer size;
  size.number<std::uint64_t>(file.size());
  std::ranges::copy(size.bytes(), file.begin() + size_place);
  std::ranges::copy(checksum_of(file), file.begin() + checksum_place);
}

ArtifactFile decode(std::span<const std::byte> bytes, const std::string& path) {
  Reader reader(bytes, path);
  check_header(bytes, reader);
  const auto count = reader.number<std::uint64_t>("number of kernels");
  check_checksum(bytes, reader);
  ArtifactFile file;
  file.library_version = reader.name("library version");
  file.abi_digest = reader.name("digest of device/abi");
  for (std::uint64_t index = 0; index < count; ++index) {
    const Bytes own = reader.block(fmt::format("kernel {}", index));
    Reader of_kernel(own, path, reader.place() - own.size());
    file.kernels.push_back(read_kernel(of_kernel));
  }
  reader.expect_end("end");
  return file;
}

}  // namespace gemmery::runtime
