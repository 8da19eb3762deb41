// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/recording/sparse_forms.hpp"

#include <array>

#include <fmt/format.h>

#include "tests/emulator/recording/tensor_core_kernels.hpp"

namespace gemmery::recording {
namespace {

using tests::recording::Element;
using tests::recording::Form;
using tests::recording::Sum;

MatrixForm sparse(int k, Element a, Element b, Sum sum, int selector) {
  MatrixForm sparse{.form = {.a = a, .b = b, .sum = sum, .k = k},
                    .kind = MatrixKind::sparse,
                    .selector = selector};
  sparse.form.opcode =
      fmt::format("mma.sp::ordered_metadata.sync.aligned.m16n8k{}.row.col.{}.{}.{}.{}", k,
                  name_of(sum), name_of(a), name_of(b), name_of(sum));
  sparse.name = sparse.form.name = fmt::format("{} {}", sparse.form.opcode, selector);
  return sparse;
}

// A's stored elements are half of those of the expanded operand.
Form stored_form(const MatrixForm& form) {
  Form stored = form.form;
  stored.k /= 2;
  return stored;
}

// Which two of four elements are stored; of tf32, which of two.
std::uint32_t draw_metadata(Element type, tests::recording::Random& random) {
  constexpr std::array<std::uint32_t, 6> pairs{0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
  std::uint32_t word = 0;
  for (int shift = 0; shift < 32; shift += 4) {
    const std::uint32_t nibble = type == Element::tf32 ? (random.one_in(2) ? 0b0100U : 0b1110U)
                                                       : pairs[random.next() % pairs.size()];
    word |= nibble << shift;
  }
  return word;
}

struct Registers {
  int a, b, c;
};
Registers registers_of(const MatrixForm& form) {
  return {words_of(stored_form(form)).a, words_of(form.form).b, words_of(form.form).c};
}

std::string loads(char operand, int count, int first) {
  std::string text;
  for (int at = 0; at < count; ++at)
    text += fmt::format("ld.global.b32 %{}{}, [%p0+{}];\n", operand, at, 128 * (first + at));
  return text;
}

}  // namespace

std::vector<MatrixForm> sparse_forms() {
  std::vector<MatrixForm> forms;
  const auto add = [&](std::array<int, 2> ks, std::array<int, 2> selectors, Element a, Element b,
                       Sum sum) {
    for (std::size_t at = 0; at < 2; ++at)
      for (int selector = 0; selector < selectors[at]; ++selector)
        forms.push_back(sparse(ks[at], a, b, sum, selector));
  };
  add({16, 32}, {4, 2}, Element::f16, Element::f16, Sum::f32);
  add({16, 32}, {4, 2}, Element::f16, Element::f16, Sum::f16);
  add({16, 32}, {4, 2}, Element::bf16, Element::bf16, Sum::f32);
  add({8, 16}, {4, 2}, Element::tf32, Element::tf32, Sum::f32);
  add({32, 64}, {2, 1}, Element::s8, Element::u8, Sum::s32);
  add({64, 128}, {2, 1}, Element::u4, Element::s4, Sum::s32);
  forms.push_back(sparse(64, Element::e4m3, Element::e5m2, Sum::f32, 0));
  forms.push_back(sparse(64, Element::e5m2, Element::e4m3, Sum::f32, 0));
  return forms;
}

std::string sparse_kernel(const MatrixForm& form) {
  const auto [a, b, c] = registers_of(form);
  std::string text = tests::recording::header;
  text += fmt::format(
      ".visible .entry run(.param .u64 in, .param .u64 out)\n.reqntid 32, 1, 1\n{{\n"
      ".reg .b32 %a<8>, %b<8>, %c<8>, %e<1>, %t<2>;\n.reg .b64 %p<3>;\n"
      "ld.param.u64 %p0, [in];\nld.param.u64 %p1, [out];\nmov.u32 %t0, %ctaid.x;\n"
      "mov.u32 %t1, %tid.x;\nmul.wide.u32 %p2, %t0, {};\nadd.u64 %p0, %p0, %p2;\n"
      "mul.wide.u32 %p2, %t0, {};\nadd.u64 %p1, %p1, %p2;\nmul.wide.u32 %p2, %t1, 4;\n"
      "add.u64 %p0, %p0, %p2;\nadd.u64 %p1, %p1, %p2;\n",
      128 * (a + b + c + 1), 128 * c);
  text += loads('a', a, 0) + loads('b', b, a) + loads('c', c, a + b) + loads('e', 1, a + b + c);
  using tests::recording::list;
  text += fmt::format("{} {}, {}, {}, {}, %e0, {};\n", form.form.opcode, list("%c", c),
                      list("%a", a), list("%b", b), list("%c", c), form.selector);
  for (int at = 0; at < c; ++at)
    text += fmt::format("st.global.b32 [%p1+{}], %c{};\n", 128 * at, at);
  return text + "ret;\n}\n";
}

std::vector<std::uint32_t> sparse_inputs(const MatrixForm& form, int test_case) {
  const auto [a, b, c] = registers_of(form);
  const auto stored = tests::recording::arrange(stored_form(form), test_case);
  const auto expanded = tests::recording::arrange(form.form, test_case);
  std::vector<std::uint32_t> words(stored.begin(), stored.begin() + 32 * a);
  words.insert(words.end(), expanded.end() - 32 * (b + c), expanded.end());
  tests::recording::Random random{tests::recording::hash_of(form.name) +
                                  static_cast<std::uint64_t>(test_case) * 0x9e3779b97f4a7c15U};
  for (int lane = 0; lane < 32; ++lane) words.push_back(draw_metadata(form.form.a, random));
  return words;
}

}  // namespace gemmery::recording
