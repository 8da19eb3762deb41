// SPDX-License-Identifier: Apache-2.0
// The PTX of kernels that run one matrix instruction on each case of a form, and the order of the
// registers' words in their inputs and results.
#pragma once

#include "wgmma_layout_cases.hpp"

namespace gemmery::tests::recording {

struct Words {
  int lanes, a, b, c;  // of each lane; wgmma: b of all lanes together
  int in() const { return lanes * (a + c) + b_all(); }
  int b_all() const { return lanes == 128 ? b : lanes * b; }
};
inline Words words_of(const Form& f) {
  const int lanes = f.is_wgmma ? 128 : 32;
  const int b = f.n * f.k * bits_of(f.b) / 32;
  return {lanes, f.m * f.k * bits_of(f.a) / 32 / lanes, f.is_wgmma ? b : b / 32,
          f.m * f.n * bits_of(f.sum) / 32 / lanes};
}

inline std::string list(const char* prefix, int count) {
  std::string text = "{";
  for (int x = 0; x < count; ++x) text += (x != 0 ? ", " : "") + (prefix + std::to_string(x));
  return text + "}";
}

inline constexpr const char* header = ".version 8.7\n.target sm_90a\n.address_size 64\n";

// in: each case's words, register by register, lane by lane; out: D in the same order.
inline std::string kernel_of(const Form& f) {
  const Words w = words_of(f);
  const std::string lanes = std::to_string(w.lanes);
  std::string t = header;
  if (f.is_wgmma) t += ".shared .align 1024 .b8 tile[256];\n";
  t += ".visible .entry run(.param .u64 in, .param .u64 out)\n.reqntid " + lanes + ", 1, 1\n{\n";
  t += ".reg .b32 %a<16>, %b<16>, %c<16>, %t<8>;\n.reg .b64 %d<8>, %fa<8>, %fb<8>, %fc<8>;\n";
  t += ".reg .pred %p;\n";
  t += "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\nmov.u32 %t0, %ctaid.x;\n"
       "mov.u32 %t1, %tid.x;\nmul.wide.u32 %d2, %t0, " +
       std::to_string(w.in() * 4) +
       ";\nadd.u64 %d0, %d0, %d2;\nmul.wide.u32 %d2, %t1, 4;\nadd.u64 %d0, %d0, %d2;\n"
       "mul.wide.u32 %d3, %t0, " +
       std::to_string(w.lanes * w.c * 4) + ";\nadd.u64 %d1, %d1, %d3;\nadd.u64 %d1, %d1, %d2;\n";
  const auto load = [&](const char* reg, int count, int first) {
    for (int x = 0; x < count; ++x)
      t += "ld.global.b32 " + (reg + std::to_string(x)) + ", [%d0+" +
           std::to_string(4 * (first + x * w.lanes)) + "];\n";
  };
  load("%a", w.a, 0);
  load("%c", w.c, w.a * w.lanes + w.b_all());
  if (!f.is_wgmma) {
    load("%b", w.b, w.a * w.lanes);
    if (f.a == Element::f64) {
      const auto join = [&](const char* wide, const char* narrow, int count) {
        for (int x = 0; x < count / 2; ++x)
          t += "mov.b64 " + (wide + std::to_string(x)) + ", {" + narrow + std::to_string(2 * x) +
               ", " + narrow + std::to_string(2 * x + 1) + "};\n";
      };
      join("%fa", "%a", w.a), join("%fb", "%b", w.b), join("%fc", "%c", w.c);
      t += f.opcode + " " + list("%fc", w.c / 2) + ", " + list("%fa", w.a / 2) + ", " +
           list("%fb", w.b / 2) + ", " + list("%fc", w.c / 2) + ";\n";
      for (int x = 0; x < w.c / 2; ++x)
        t += "mov.b64 {%c" + std::to_string(2 * x) + ", %c" + std::to_string(2 * x + 1) + "}, %fc" +
             std::to_string(x) + ";\n";
    } else {
      t += f.opcode + " " + list("%c", w.c) + ", " + list("%a", w.a) + ", " + list("%b", w.b) +
           ", " + list("%c", w.c) + ";\n";
    }
  } else {
    t += "setp.lt.u32 %p, %t1, 64;\nmov.u32 %t2, tile;\nshl.b32 %t3, %t1, 2;\n"
         "add.u32 %t3, %t3, %t2;\n@%p ld.global.b32 %t4, [%d0+" +
         std::to_string(4 * w.a * w.lanes) + "];\n@%p st.shared.b32 [%t3], %t4;\n";
    t += "fence.proxy.async;\nbar.sync 0;\nand.b32 %t2, %t2, 0x3ffff;\nshr.u32 %t2, %t2, 4;\n"
         "cvt.u64.u32 %d4, %t2;\nor.b64 %d4, %d4, " +
         std::to_string((128ull >> 4 << 16) | (256ull >> 4 << 32)) + ";\n";
    t += std::string("setp.ne.u32 %p, ") + "%t1, " + (f.drops_c ? "%t1" : "1000") + ";\n";
    t += "wgmma.fence.sync.aligned;\n" + f.opcode + " " + list("%c", w.c) + ", " + list("%a", w.a) +
         ", %d4, %p";
    if (f.sum != Sum::s32) {
      t += f.negates_a ? ", -1" : ", 1";
      t += f.negates_b ? ", -1" : ", 1";
      if (bits_of(f.a) == 16) t += ", 0";
    }
    t += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  }
  for (int x = 0; x < w.c; ++x)
    t += "st.global.b32 [%d1+" + std::to_string(4 * x * w.lanes) + "], %c" + std::to_string(x) +
         ";\n";
  return t + "ret;\n}\n";
}

inline std::vector<std::uint32_t> arrange(const Form& f, const Inputs& in) {
  const Words w = words_of(f);
  const auto a = pack(in.a, bits_of(f.a)), b = pack(in.b, bits_of(f.b)),
             c = pack(in.c, bits_of(f.sum));
  const int k_words = f.k * bits_of(f.a) / 32, n_words = f.n * bits_of(f.sum) / 32;
  const int unit = f.a == Element::f64 ? 2 : 1;
  std::vector<std::uint32_t> out(static_cast<std::size_t>(w.in()));
  std::uint32_t* at = out.data();
  for (int r = 0; r < w.a; ++r)
    for (int l = 0; l < w.lanes; ++l) {
      const RowWord p = a_place(f.m, unit, l, r);
      *at++ = a[static_cast<std::size_t>(p.row * k_words + p.word)];
    }
  if (f.is_wgmma) {  // two columns of core matrices of 8 rows of 16 bytes
    for (int x = 0; x < w.b; ++x)
      *at++ = b[static_cast<std::size_t>(x % 32 / 4 * k_words + x / 32 * 4 + x % 4)];
  } else {
    for (int r = 0; r < w.b; ++r)
      for (int l = 0; l < w.lanes; ++l) {
        const RowWord p = b_place(unit, l, r);
        *at++ = b[static_cast<std::size_t>(p.row * k_words + p.word)];
      }
  }
  for (int r = 0; r < w.c; ++r)
    for (int l = 0; l < w.lanes; ++l) {
      const RowWord p = c_place(f.sum, l, r);
      *at++ = c[static_cast<std::size_t>(p.row * n_words + p.word)];
    }
  return out;
}

inline std::vector<std::uint32_t> arrange(const Form& f, int test_case) {
  return arrange(f, make_inputs(f, test_case));
}

// Converts a kernel's result words for a case to rows as in memory.
inline std::vector<std::uint32_t> rows_of(const Form& f, const std::uint32_t* out) {
  const Words w = words_of(f);
  const int n_words = f.n * bits_of(f.sum) / 32;
  std::vector<std::uint32_t> d(result_words(f));
  for (int r = 0; r < w.c; ++r)
    for (int l = 0; l < w.lanes; ++l) {
      const RowWord p = c_place(f.sum, l, r);
      d[static_cast<std::size_t>(p.row * n_words + p.word)] = *out++;
    }
  return d;
}

// image: the shared memory; descriptors: two per case; out: 64 * layout_n words per case, register
// by register.
inline std::string kernel_of(const LayoutForm& f) {
  std::string t = header;
  t += ".extern .shared .align 1024 .b8 tile[];\n"
       ".visible .entry run(.param .u64 image, .param .u64 descriptors, .param .u64 out)\n"
       ".reqntid 128, 1, 1\n{\n.reg .b32 %c<" +
       std::to_string(layout_n / 2) +
       ">, %t<8>;\n.reg .b64 %d<10>;\n.reg .pred %p;\n"
       "ld.param.u64 %d0, [image];\nld.param.u64 %d1, [descriptors];\nld.param.u64 %d2, [out];\n"
       "mov.u32 %t0, %ctaid.x;\nmov.u32 %t1, %tid.x;\nmul.wide.u32 %d3, %t0, 16;\n"
       "add.u64 %d1, %d1, %d3;\nld.global.u64 %d4, [%d1];\nld.global.u64 %d5, [%d1+8];\n"
       "mul.wide.u32 %d6, %t1, 4;\nadd.u64 %d0, %d0, %d6;\nmov.u32 %t2, tile;\n"
       // Descriptors are relative to the tile's start.
       "shr.u32 %t6, %t2, 4;\ncvt.u64.u32 %d7, %t6;\nadd.u64 %d4, %d4, %d7;\n"
       "add.u64 %d5, %d5, %d7;\n"
       "shl.b32 %t3, %t1, 2;\nadd.u32 %t2, %t2, %t3;\nmov.u32 %t4, 0;\n"
       "fill:\nld.global.b32 %t5, [%d0];\nst.shared.b32 [%t2], %t5;\nadd.u64 %d0, %d0, 512;\n"
       "add.u32 %t2, %t2, 512;\nadd.u32 %t4, %t4, 512;\nsetp.lt.u32 %p, %t4, " +
       std::to_string(layout_image_bytes) +
       ";\n@%p bra fill;\nfence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n"
       "setp.ne.u32 %p, %t1, %t1;\n" +
       f.opcode + " " + list("%c", layout_n / 2) + ", %d4, %d5, %p";
  if (f.element != Element::s8) t += ", 1, 1";
  if (f.element == Element::f16)
    t += std::string(", ") + (f.a_is_transposed ? "1" : "0") + ", " +
         (f.b_is_transposed ? "1" : "0");
  t += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
       "mul.wide.u32 %d8, %t0, " +
       std::to_string(64 * layout_n * 4) + ";\nadd.u64 %d2, %d2, %d8;\nadd.u64 %d2, %d2, %d6;\n";
  for (int x = 0; x < layout_n / 2; ++x)
    t += "st.global.b32 [%d2+" + std::to_string(512 * x) + "], %c" + std::to_string(x) + ";\n";
  return t + "ret;\n}\n";
}

}  // namespace gemmery::tests::recording
