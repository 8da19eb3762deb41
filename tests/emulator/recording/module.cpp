// SPDX-License-Identifier: Apache-2.0
// The forms as one PTX module, their inputs, and the file of their results.
#include <gemmery/error.hpp>

#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tests/emulator/recording/forms.hpp"

namespace gemmery::recording {
namespace {

struct KindFacts {
  int bits;
  const char* register_type;
};

KindFacts facts(Kind kind) {
  switch (kind) {
    case Kind::b16:
      return {16, "b16"};
    case Kind::u16:
      return {16, "u16"};
    case Kind::s16:
      return {16, "s16"};
    case Kind::f16:
    case Kind::bf16:
    case Kind::e4m3x2:
    case Kind::e5m2x2:
      return {16, "b16"};
    case Kind::b32:
    case Kind::f16x2:
    case Kind::bf16x2:
      return {32, "b32"};
    case Kind::shift:
    case Kind::selector:
    case Kind::u32:
      return {32, "u32"};
    case Kind::s32:
      return {32, "s32"};
    case Kind::f32:
      return {32, "f32"};
    case Kind::b64:
      return {64, "b64"};
    case Kind::u64:
      return {64, "u64"};
    case Kind::s64:
      return {64, "s64"};
    case Kind::f64:
      return {64, "f64"};
    case Kind::pred:
      return {1, "pred"};
  }
  return {32, "b32"};
}

// The register `name` from the 64-bit word in `w`.
std::string unpack(Kind kind, const std::string& name) {
  switch (bits_of(kind)) {
    case 1:
      return "and.b64 w, w, 1;\nsetp.ne.u64 " + name + ", w, 0;\n";
    case 16:
      return "cvt.u16.u64 " + name + ", w;\n";
    case 32:
      return "cvt.u32.u64 half, w;\nmov.b32 " + name + ", half;\n";
    default:
      return "mov.b64 " + name + ", w;\n";
  }
}
std::string pack(Kind kind, const std::string& name) {
  switch (bits_of(kind)) {
    case 1:
      return "selp.u64 w, 1, 0, " + name + ";\n";
    case 16:
      return "mov.b16 quarter, " + name + ";\ncvt.u64.u16 w, quarter;\n";
    case 32:
      return "mov.b32 half, " + name + ";\ncvt.u64.u32 w, half;\n";
    default:
      return "mov.b64 w, " + name + ";\n";
  }
}

constexpr std::array<const char*, 4> operand_names{"a", "b", "c", "x"};
constexpr std::array<const char*, 2> result_names{"d", "e"};

std::string entry_text(const Form& form, std::size_t index) {
  std::ostringstream text;
  text
      << "// " << form.name << "\n.visible .entry form_" << index
      << "(.param .u64 in, .param .u64 out)\n{\n"
         ".shared .align 128 .b8 scratch[4096];\n"
         ".reg .b64 w, from, to, step;\n.reg .b32 half, at, warp_at, thread;\n.reg .b16 quarter;\n";
  for (std::size_t at = 0; at < form.operands.size(); ++at)
    text << ".reg ." << facts(form.operands[at]).register_type << " " << operand_names[at] << ";\n";
  for (std::size_t at = 0; at < form.results.size(); ++at)
    text << ".reg ." << facts(form.results[at]).register_type << " " << result_names[at] << ";\n";
  text << "ld.param.u64 from, [in];\nld.param.u64 to, [out];\nmov.u32 thread, %tid.x;\n"
       << "mul.wide.u32 step, thread, " << 8 * form.operands.size()
       << ";\nadd.u64 from, from, step;\n"
       << "mul.wide.u32 step, thread, " << 8 * form.results.size() << ";\nadd.u64 to, to, step;\n"
       << "mov.u32 at, scratch;\nshr.u32 warp_at, thread, 5;\nmad.lo.u32 warp_at, warp_at, 1024, "
          "at;\n"
       << "mad.lo.u32 at, thread, 32, at;\n";
  for (std::size_t at = 0; at < form.operands.size(); ++at)
    text << "ld.global.b64 w, [from+" << 8 * at << "];\n"
         << unpack(form.operands[at], operand_names[at]);
  text << form.body << "\n";
  for (std::size_t at = 0; at < form.results.size(); ++at)
    text << pack(form.results[at], result_names[at]) << "st.global.b64 [to+" << 8 * at << "], w;\n";
  text << "ret;\n}\n";
  return text.str();
}

class Numbers {  // splitmix64 (Steele, Lea and Flood, OOPSLA 2014)
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};

std::uint64_t name_hash(const std::string& text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// A random float from sign, exponent field and fraction: special values, values near one, or any
// bits.
std::uint64_t random_float(Numbers& numbers, int exponent_bits, int fraction_bits) {
  const std::uint64_t any = numbers.next();
  const int width = 1 + exponent_bits + fraction_bits;
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  const std::uint64_t sign = (any >> 63) << (width - 1);
  const std::uint64_t top = (std::uint64_t{1} << exponent_bits) - 1, bias = top >> 1;
  const std::uint64_t fraction_mask = (std::uint64_t{1} << fraction_bits) - 1;
  switch (numbers.below(6)) {
    case 0: {  // special: zero, subnormals, smallest and largest, one, infinity, NaN
      const std::array<std::uint64_t, 10> edges{
          0,
          1,
          fraction_mask,
          fraction_mask + 1,
          (top << fraction_bits) - 1,
          top << fraction_bits,
          (top << fraction_bits) | (fraction_mask / 2 + 1),
          bias << fraction_bits,
          (bias << fraction_bits) + 1,
          ((bias - 1) << fraction_bits) | (fraction_mask / 2 + 1)};
      return sign | edges[numbers.below(edges.size())];
    }
    case 1: {  // halves and integers, where rounding ties
      const std::uint64_t exponent = bias - 2 + numbers.below(8);
      const std::uint64_t keep = fraction_mask & ~(fraction_mask >> numbers.below(5));
      return (sign | exponent << fraction_bits | (any & keep)) & mask;
    }
    case 2:
    case 3:
    case 4: {  // near one, so that sums cancel and round
      const std::uint64_t spread = std::min<std::uint64_t>(bias - 1, 12);
      const std::uint64_t exponent = bias - spread + numbers.below(2 * spread);
      return (sign | exponent << fraction_bits | (any & fraction_mask)) & mask;
    }
    default:
      return any & mask;
  }
}

std::uint64_t random_integer(Numbers& numbers, int bits) {
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t any = numbers.next();
  switch (numbers.below(4)) {
    case 0: {
      const std::array<std::uint64_t, 7> edges{0, 1, mask, mask >> 1, (mask >> 1) + 1, 2, mask - 1};
      return edges[numbers.below(edges.size())];
    }
    case 1:
      return any >> numbers.below(static_cast<std::uint64_t>(bits)) & mask;  // small
    case 2:
      return ~(any >> (64 - bits) >> numbers.below(static_cast<std::uint64_t>(bits))) & mask;
    default:
      return any & mask;
  }
}

std::uint64_t random_word(Numbers& numbers, Kind kind) {
  switch (kind) {
    case Kind::f16:
      return random_float(numbers, 5, 10);
    case Kind::bf16:
      return random_float(numbers, 8, 7);
    case Kind::f16x2: {
      const std::uint64_t low = random_float(numbers, 5, 10);
      return low | random_float(numbers, 5, 10) << 16;
    }
    case Kind::bf16x2: {
      const std::uint64_t low = random_float(numbers, 8, 7);
      return low | random_float(numbers, 8, 7) << 16;
    }
    case Kind::f32:
      return random_float(numbers, 8, 23);
    case Kind::f64:
      return random_float(numbers, 11, 52);
    case Kind::e4m3x2:
    case Kind::e5m2x2:
      return numbers.next() & 0xffff;
    case Kind::pred:
      return numbers.next() >> 60 & 1;
    case Kind::shift:
      return numbers.below(71);
    case Kind::selector:
      return random_integer(numbers, 32);
    default:
      return random_integer(numbers, bits_of(kind));
  }
}

int stored_bytes(Kind kind) { return (bits_of(kind) + 7) / 8; }

}  // namespace

int bits_of(Kind kind) { return facts(kind).bits; }

std::string module_text(const std::vector<Form>& forms) {
  std::string text = ".version 8.0\n.target sm_90a\n.address_size 64\n";
  for (std::size_t index = 0; index < forms.size(); ++index)
    text += entry_text(forms[index], index);
  return text;
}

std::vector<std::uint64_t> inputs_of(const Form& form) {
  Numbers numbers(name_hash(form.name));
  std::vector<std::uint64_t> words;
  for (std::uint32_t at = 0; at < cases_per_form; ++at) {
    for (const Kind kind : form.operands) words.push_back(random_word(numbers, kind));
  }
  return words;
}

void write_recording(const std::string& path, const std::string& head,
                     const std::vector<Form>& forms,
                     const std::vector<std::vector<std::uint64_t>>& results) {
  std::ofstream file(path, std::ios::binary);
  file << head << "\n" << forms.size() << "\n";
  for (std::size_t index = 0; index < forms.size(); ++index) {
    const Form& form = forms[index];
    std::string bytes;
    for (std::size_t at = 0; at < results[index].size(); ++at) {
      const int count = stored_bytes(form.results[at % form.results.size()]);
      for (int byte = 0; byte < count; ++byte)
        bytes += static_cast<char>(results[index][at] >> 8 * byte & 0xff);
    }
    file << form.name << "\n";
    for (const Kind kind : form.results) file << stored_bytes(kind) << " ";
    file << bytes.size() << "\n" << bytes << "\n";
  }
}

Recording read_recording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Recording recording;
  std::string line;
  std::getline(file, recording.head);
  std::getline(file, line);
  const std::size_t count = line.empty() ? 0 : std::stoul(line);
  for (std::size_t index = 0; index < count; ++index) {
    std::getline(file, line);
    recording.names.push_back(line);
    std::getline(file, line);
    std::istringstream numbers(line);
    std::vector<std::size_t> sizes;
    for (std::size_t number; numbers >> number;) sizes.push_back(number);
    std::string bytes(sizes.back(), '\0');
    sizes.pop_back();
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::getline(file, line);
    std::vector<std::uint64_t> words;
    for (std::size_t at = 0, which = 0; at < bytes.size(); ++which) {
      const std::size_t size = sizes[which % sizes.size()];
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, size);
      words.push_back(word);
      at += size;
    }
    recording.results.push_back(std::move(words));
  }
  if (!file) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = path,
                 .expected = "a whole recording of " + std::to_string(count) + " forms",
                 .got = std::to_string(recording.names.size())});
  }
  return recording;
}

}  // namespace gemmery::recording
