// SPDX-License-Identifier: Apache-2.0
// Random shared-memory descriptors for wgmma and the memory that they describe, to record the
// mapping from bytes to elements. Values are small integers, so that all sums are exact.
#pragma once

#include "tensor_core_forms.hpp"

namespace gemmery::tests::recording {

inline constexpr int layout_n = 128;
inline constexpr int layout_cases = 48;
inline constexpr int layout_image_bytes = 160 * 1024;

struct LayoutForm {
  std::string name, opcode;
  Element element = Element::f16;
  bool a_is_transposed = false, b_is_transposed = false;
};
inline std::vector<LayoutForm> all_layout_forms() {
  std::vector<LayoutForm> forms;
  for (const bool a : {false, true})
    for (const bool b : {false, true})
      forms.push_back({.name = std::string("f16 ") + (a ? "MN" : "K") + " " + (b ? "MN" : "K"),
                       .opcode = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16",
                       .element = Element::f16,
                       .a_is_transposed = a,
                       .b_is_transposed = b});
  forms.push_back({.name = "s8",
                   .opcode = "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8",
                   .element = Element::s8});
  forms.push_back({.name = "tf32",
                   .opcode = "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32",
                   .element = Element::tf32});
  return forms;
}

inline std::vector<std::uint32_t> layout_image(const LayoutForm& f) {
  Random random{hash_of(f.name)};
  const int bits = bits_of(f.element);
  std::vector<std::uint64_t> elements;
  for (int x = 0; x < layout_image_bytes * 8 / bits; ++x) {
    const int value = random.range(-4, 4);
    elements.push_back(f.element == Element::s8 ? static_cast<std::uint64_t>(value) & 0xff
                                                : integer_float(shape_of(f.element), value) << 0);
  }
  return pack(elements, bits);
}

struct LayoutDescriptor {
  std::uint32_t start = 0, leading = 0, stride = 0;  // bytes
  std::uint32_t base_offset = 0, mode = 0;
  std::uint64_t bits() const {
    return std::uint64_t{start >> 4} | std::uint64_t{leading >> 4} << 16 |
           std::uint64_t{stride >> 4} << 32 | std::uint64_t{base_offset} << 49 |
           std::uint64_t{mode} << 62;
  }
};
struct LayoutDescriptors {
  LayoutDescriptor a, b;
};
// Cases 0 to 15: aligned tiles; 16 to 31: starts at any 16 bytes; from 32: base offsets too.
inline LayoutDescriptors layout_descriptors(const LayoutForm& f, int test_case) {
  Random random{hash_of(f.name + " descriptors") + static_cast<std::uint64_t>(test_case)};
  const auto one = [&] {
    LayoutDescriptor d;
    const int unit = test_case < 16 ? 1024 : 16;
    d.start = static_cast<std::uint32_t>(random.range(0, 16 * 1024 / unit) * unit);
    d.leading = static_cast<std::uint32_t>(random.range(0, 8 * 1024 / unit) * unit);
    d.stride = static_cast<std::uint32_t>(random.range(0, 4 * 1024 / unit) * unit);
    if (test_case < 16 && random.one_in(2))
      d.stride = static_cast<std::uint32_t>(random.range(1, 32) * 128);
    d.base_offset = test_case < 32 ? 0 : static_cast<std::uint32_t>(random.range(0, 7));
    d.mode = static_cast<std::uint32_t>(random.range(0, 3));
    return d;
  };
  LayoutDescriptors out;
  out.a = one();
  out.b = one();
  return out;
}

}  // namespace gemmery::tests::recording
