// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/recording/matrix_forms.hpp"

#include <fmt/format.h>

#include "tests/emulator/recording/loaded_module.hpp"
#include "tests/emulator/recording/sparse_forms.hpp"
#include "tests/emulator/recording/tensor_core_kernels.hpp"

namespace gemmery::recording {
namespace {

using tests::recording::Element;
using tests::recording::Form;
using tests::recording::Inputs;
using tests::recording::Sum;

// --- which --------------------------------------------------------------------------------------

MatrixForm wmma(int m, int n, int k, Element type, Sum sum) {
  MatrixForm wmma{.form = {.a = type, .b = type, .sum = sum, .m = m, .n = n, .k = k}};
  const std::string types = type == Element::f16
                                ? fmt::format("{0}.{0}", name_of(sum))
                                : fmt::format("{0}.{1}.{1}.{0}", name_of(sum), name_of(type));
  wmma.form.opcode = fmt::format("wmma.mma.sync.aligned.row.col.m{}n{}k{}{}.{}", m, n, k,
                                 type == Element::f64 ? ".rn" : "", types);
  wmma.name = wmma.form.name = wmma.form.opcode;
  return wmma;
}

// Products of which most are smaller than the smallest number of the result, with signs.
MatrixForm tiny_sums(int k, Element type) {
  MatrixForm tiny{.form = {.a = type, .b = type, .k = k}, .kind = MatrixKind::tiny_sums};
  tiny.form.opcode = fmt::format("mma.sync.aligned.m16n8k{}.row.col.f32.{}.{}.f32", k,
                                 name_of(type), name_of(type));
  tiny.name = tiny.form.name = tiny.form.opcode + ", tiny sums";
  return tiny;
}

}  // namespace

std::vector<MatrixForm> all_matrix_forms() {
  std::vector<MatrixForm> forms;
  for (const auto& [m, n] : {std::pair{16, 16}, {32, 8}, {8, 32}}) {
    for (const Sum sum : {Sum::f32, Sum::f16}) forms.push_back(wmma(m, n, 16, Element::f16, sum));
    forms.push_back(wmma(m, n, 16, Element::bf16, Sum::f32));
  }
  forms.push_back(wmma(16, 16, 8, Element::tf32, Sum::f32));
  forms.push_back(wmma(8, 8, 4, Element::f64, Sum::f64));
  for (const int k : {8, 16}) forms.push_back(tiny_sums(k, Element::bf16));
  for (const int k : {4, 8}) forms.push_back(tiny_sums(k, Element::tf32));
  for (const MatrixForm& sparse : sparse_forms()) forms.push_back(sparse);
  return forms;
}

namespace {

// --- kernels ------------------------------------------------------------------------------------

// 32-bit words of rows x columns elements.
int words_of(int rows, int columns, int bits) { return rows * columns * bits / 32; }

struct Extents {
  int a, b, c;  // words of one case; D has as many as C
  int in() const { return a + b + c; }
};
Extents extents_of(const MatrixForm& form) {
  const Form& f = form.form;
  return {words_of(f.m, f.k, bits_of(f.a)), words_of(f.n, f.k, bits_of(f.b)),
          words_of(f.m, f.n, bits_of(f.sum))};
}

// Registers of a fragment (PTX ISA, wmma): f16 keeps A and B twice.
int fragment_registers(Element type, int words) {
  return type == Element::f16 ? 8 : type == Element::f64 ? 1 : words / 32;
}

// "{%a0, %a1}", of 64-bit registers for f64.
std::string fragment(char operand, bool is_wide, int registers) {
  return tests::recording::list(fmt::format("%{}{}", is_wide ? "w" : "", operand).c_str(),
                                is_wide ? std::max(1, registers) : registers);
}

// One warp a block: the case's A, B and C are read row by row where they lie, D is written so.
std::string wmma_kernel(const MatrixForm& form) {
  const Form& f = form.form;
  const Extents words = extents_of(form);
  const bool is_wide = f.a == Element::f64;
  const std::string shape = fmt::format("m{}n{}k{}", f.m, f.n, f.k);
  const int sums = is_wide ? 2 : words.c / 32;
  const std::string a = fragment('a', is_wide, fragment_registers(f.a, words.a));
  const std::string b = fragment('b', is_wide, fragment_registers(f.b, words.b));
  const std::string c = fragment('c', is_wide, sums), d = fragment('d', is_wide, sums);
  // Fragments of f32 and f64 are floating-point registers.
  const auto kind = [](Sum sum) { return sum == Sum::f32 ? ".f32" : ".b32"; };
  std::string text = tests::recording::header;
  text += fmt::format(
      ".visible .entry run(.param .u64 in, .param .u64 out)\n.reqntid 32, 1, 1\n{{\n"
      ".reg .b32 %a<8>, %b<8>, %t<2>;\n.reg {} %c<8>;\n.reg {} %d<8>;\n"
      ".reg .f64 %wa<2>, %wb<2>, %wc<2>, %wd<2>;\n.reg .b64 %p<6>;\n"
      "ld.param.u64 %p0, [in];\nld.param.u64 %p1, [out];\nmov.u32 %t0, %ctaid.x;\n"
      "mul.wide.u32 %p2, %t0, {};\nadd.u64 %p0, %p0, %p2;\n"
      "mul.wide.u32 %p2, %t0, {};\nadd.u64 %p1, %p1, %p2;\n"
      "add.u64 %p3, %p0, {};\nadd.u64 %p4, %p0, {};\n",
      kind(f.sum), kind(f.sum), 4 * words.in(), 4 * words.c, 4 * words.a, 4 * (words.a + words.b));
  text += fmt::format("wmma.load.a.sync.aligned.row.{}.global.{} {}, [%p0], {};\n", shape,
                      name_of(f.a), a, f.k);
  text += fmt::format("wmma.load.b.sync.aligned.col.{}.global.{} {}, [%p3], {};\n", shape,
                      name_of(f.b), b, f.k);
  text += fmt::format("wmma.load.c.sync.aligned.row.{}.global.{} {}, [%p4], {};\n", shape,
                      name_of(f.sum), c, f.n);
  text += fmt::format("{} {}, {}, {}, {};\n", f.opcode, d, a, b, c);
  text += fmt::format("wmma.store.d.sync.aligned.row.{}.global.{} [%p1], {}, {};\nret;\n}}\n",
                      shape, name_of(f.sum), d, f.n);
  return text;
}

// --- inputs -------------------------------------------------------------------------------------

// Rows of A, of B's columns and of C, one after the other.
std::vector<std::uint32_t> wmma_inputs(const MatrixForm& form, int test_case) {
  const Form& f = form.form;
  const Inputs in = make_inputs(f, test_case);
  std::vector<std::uint32_t> words;
  for (const auto& packed :
       {tests::recording::pack(in.a, bits_of(f.a)), tests::recording::pack(in.b, bits_of(f.b)),
        tests::recording::pack(in.c, bits_of(f.sum))})
    words.insert(words.end(), packed.begin(), packed.end());
  return words;
}

// Exponents of the products lie about 2^-149; C is zero of either sign, or one of the smallest
// subnormals.
Inputs tiny_inputs(const Form& f, int test_case) {
  tests::recording::Random random{tests::recording::hash_of(f.name) +
                                  static_cast<std::uint64_t>(test_case) * 0x632be59bd9b4e019U};
  const auto shape = tests::recording::shape_of(f.a);
  const auto element = [&](int low, int high) {
    return make_float(shape, random.one_in(2), random.range(low, high), random.next());
  };
  const bool is_sparse = test_case % 3 == 0;
  Inputs in;
  for (int x = 0; x < f.m * f.k; ++x)
    in.a.push_back(is_sparse && !random.one_in(f.k) ? 0 : element(-80, -74));
  for (int x = 0; x < f.n * f.k; ++x) in.b.push_back(element(-84, -72));
  for (int x = 0; x < f.m * f.n; ++x)
    in.c.push_back((random.next() & 0x80000000U) | (random.one_in(3) ? random.next() & 3U : 0U));
  return in;
}

std::vector<std::uint32_t> inputs_of(const MatrixForm& form, int test_case) {
  if (form.kind == MatrixKind::wmma) return wmma_inputs(form, test_case);
  if (form.kind == MatrixKind::sparse) return sparse_inputs(form, test_case);
  return tests::recording::arrange(form.form, tiny_inputs(form.form, test_case));
}

std::string kernel_of(const MatrixForm& form) {
  if (form.kind == MatrixKind::wmma) return wmma_kernel(form);
  if (form.kind == MatrixKind::sparse) return sparse_kernel(form);
  return kernel_of(form.form);
}

}  // namespace

std::vector<std::uint32_t> run_matrix_form(const MatrixForm& form, Device device) {
  std::vector<std::uint32_t> inputs;
  for (int test_case = 0; test_case < cases_per_matrix_form; ++test_case) {
    const auto one = inputs_of(form, test_case);
    inputs.insert(inputs.end(), one.begin(), one.end());
  }
  const driver::GpuDevice& gpu = driver::open_device(device);
  const driver::ScopedContext current(gpu);
  const OwnedStream stream(device);
  const LoadedModule module(gpu, kernel_of(form));
  const auto words = static_cast<std::size_t>(extents_of(form).c);
  const auto out = module.run<std::uint32_t>("run", inputs, words * cases_per_matrix_form,
                                             cases_per_matrix_form, 32, stream.get());
  std::vector<std::uint32_t> digests;
  for (std::size_t at = 0; at < out.size(); at += words)
    digests.push_back(tests::recording::digest(out.data() + at, words));
  return digests;
}

}  // namespace gemmery::recording
