// SPDX-License-Identifier: Apache-2.0
// The functions that hardware approximates. The emulator returns the exact value, rounded: within
// the error that the PTX ISA allows, but not with the same bits as hardware.
//
//   function            error that the PTX ISA allows (9.7.3-9.7.4)                 emulator
//   ------------------  ----------------------------------------------------------  ---------------
//   rcp.approx.f32      1 ulp                                                       rounded
//   sqrt.approx.f32     relative 2^-23                                              rounded
//   rsqrt.approx.f32    relative 2^-22.9                                            rounded
//   div.approx.f32      2 ulp for |b| in [2^-126, 2^126]; 0 for larger finite |b|   a * rcp(b)
//   div.full.f32        2 ulp                                                       rounded
//   ex2.approx.f32      2 ulp (2^-22.5 relative before PTX 7)                       rounded
//   lg2.approx.f32      relative 2^-22, absolute 2^-22 for a in (0.5, 2)            rounded
//   sin, cos.approx     absolute 2^-20.5 in [-pi, pi]                               rounded
//   tanh.approx.f32     relative 2^-11                                              rounded
//   ex2.approx.f16      relative 2^-9.9;  bf16: relative 2^-7                       rounded (*)
//   tanh.approx.f16     absolute 2^-10.987;  bf16: absolute 2^-8                    rounded
//   rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: the upper word, fraction to 20 bits   cut to 20 bits
//
// Infinities, zeros and NaN give the results in the manual's tables. (*) Subnormal results of
// ex2.approx.f16 become zero, as on an H200 in the one case that was recorded.
#pragma once

namespace gemmery::emulator {

float approximate_reciprocal(float a) noexcept;
float approximate_square_root(float a) noexcept;
float approximate_reciprocal_root(float a) noexcept;
float approximate_quotient(float a, float b) noexcept;
float full_range_quotient(float a, float b) noexcept;
float approximate_exp2(float a) noexcept;
float approximate_exp2_of_f16(float a) noexcept;  // flushes results below f16's normal numbers
float approximate_log2(float a) noexcept;
float approximate_sine(float a) noexcept;
float approximate_cosine(float a) noexcept;
float approximate_tanh(float a) noexcept;
double approximate_reciprocal(double a) noexcept;
double approximate_reciprocal_root(double a) noexcept;

}  // namespace gemmery::emulator
