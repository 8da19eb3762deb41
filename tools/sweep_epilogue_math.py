#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the operations of ops.def, as a GPU computes them for float, against the errors that their rows declare, brief
formulas (brief_gelu) too: all 2^32 arguments for operations with one operand, 2^31 random pairs and triples for the others,
with double on the same GPU as the reference; and casts of doubles to integers against docs/epilogues.md. It needs a GPU, its
driver and NVRTC, nothing else. Usage: sweep_epilogue_math.py [ROOT OF THE REPOSITORY]
"""
import ctypes
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()

SOURCE = r"""
#include <device/epilogue/operations.cuh>
using namespace gemmery::device;
using U64 = unsigned long long;

__device__ unsigned mix(U64 x) {
  x ^= x >> 33; x *= 0xff51afd7ed558ccdULL; x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ULL; x ^= x >> 33;
  return static_cast<unsigned>(x);
}
// Any bits, or numbers of moderate size.
__device__ float draw(U64 seed, bool moderate) {
  const unsigned bits = mix(seed);
  if (!moderate) return __uint_as_float(bits);
  return __uint_as_float((bits & 0x807fffffU) | ((112U + (mix(seed + 77) % 32U)) << 23));
}

struct Worst { U64 ratio_and_bits; U64 wrong_specials; U64 first_wrong; };

// Of results that are no finite floats on both sides.
__device__ void judge_special(Worst* worst, float got, double want, unsigned tag) {
  // Next to the threshold of overflow either side is within the error.
  const bool is_near = !isnan(want) && !isnan(got) && fabs(want) > 0x1.ffffp127 &&
                       signbit(got) == signbit(want);
  const bool is_right = isnan(want) ? isnan(got) : got == static_cast<float>(want);
  if (is_right || is_near) return;
  atomicAdd(&worst->wrong_specials, 1ULL);
  atomicMax(&worst->first_wrong, (1ULL << 32) | tag);
}

struct Best { float ratio = -1; unsigned tag = 0; };
"""

BODY = r"""
extern "C" __global__ void sweep_{name}(Worst* worst, U64 count) {{
  Best best;
  for (U64 at = blockIdx.x * U64(blockDim.x) + threadIdx.x; at < count; at += U64(gridDim.x) * blockDim.x) {{
    {arguments}
    const float got = op::{function}({floats});
    const double want = op::{reference}({doubles});
    const float rounded = static_cast<float>(want);
    if (!isfinite(rounded) || !isfinite(got)) {{
      judge_special(worst, got, want, static_cast<unsigned>(at));
      continue;
    }}
    const double allowed = 0x1p-24 * ({relative} * fabs(want) + {absolute} * fmax(1.0, fabs(static_cast<double>(x)))) + 0x1p-149;
    const float ratio = static_cast<float>(fabs(got - want) / allowed);
    if (ratio > best.ratio) best = {{ratio, static_cast<unsigned>(at)}};
  }}
  if (best.ratio >= 0)
    atomicMax(&worst->ratio_and_bits, (static_cast<U64>(__float_as_uint(best.ratio)) << 32) | best.tag);
}}
"""

CASTS = r"""
extern "C" __global__ void casts(const double* x, double* result, int count) {
  if (threadIdx.x >= count) return;
  const double value = x[threadIdx.x];
  double* at = result + threadIdx.x * 8;
  using gemmery::abi::DType, gemmery::abi::Rounding, gemmery::abi::Overflow;
#define EACH(type)                                                                  \
  *at++ = op::cast<DType::type, Rounding::nearest_even, Overflow::natural>(value);  \
  *at++ = op::cast<DType::type, Rounding::toward_zero, Overflow::natural>(value);
  EACH(int8) EACH(uint8) EACH(int32) EACH(uint32)
}
"""
INTEGERS = [("s8", -2**7, 2**7 - 1), ("u8", 0, 2**8 - 1),
            ("s32", -2**31, 2**31 - 1), ("u32", 0, 2**32 - 1)]


def rows():
    text = (ROOT / "include/gemmery/ops.def").read_text()
    pattern = re.compile(
        r"^GEMMERY_OP\((\w+),\s*(\d),\s*real,.*GEMMERY_TURNS\([^)]*\),\s*(\d+),\s*(\d+)\)", re.M)
    brief = re.compile(r"^GEMMERY_BRIEF\((\w+),.*,\s*(\d+),\s*(\d+)\)", re.M)
    plain = [(name, int(arity), float(relative), float(absolute))
             for name, arity, relative, absolute in pattern.findall(text)]
    return plain + [(f"brief_{name}", 1, float(relative), float(absolute))
                    for name, relative, absolute in brief.findall(text)]


def body(name, arity, relative, absolute):
    if arity == 1:
        arguments = "const float x = __uint_as_float(static_cast<unsigned>(at));"
        names = "x"
    else:
        names = "xyz"[:arity]
        arguments = "\n    ".join(
            f"const float {letter} = draw(at * 3 + {index}, at & 1);"
            for index, letter in enumerate(names))
    reference = name.removeprefix("brief_")
    function = name if name == reference else f"brief::{reference}"
    return BODY.format(name=name, function=function, reference=reference, arguments=arguments, relative=relative, absolute=absolute,
                       floats=", ".join(names),
                       doubles=", ".join(f"static_cast<double>({n})" for n in names))


def integer_of(value, lowest, highest, toward_zero):
    if math.isnan(value):
        return 0.0
    if math.isinf(value):
        return float(highest if value > 0 else lowest)
    return float(min(max(math.trunc(value) if toward_zero else round(value), lowest), highest))


def count_wrong_casts(cuda, module):
    values = [math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5,
              126.5, 127.5, -128.5, -129.0, 255.5, 1e300, -1e300, 5e-324]
    values += [float(sign * 2**31 + step / 4) for sign in (-1, 1, 2) for step in range(-6, 7)]
    function, x, result = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    count = ctypes.c_int(len(values))
    given, got = (ctypes.c_double * len(values))(*values), (ctypes.c_double * (8 * len(values)))()
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"casts"), "casts")
    for memory, array in ((x, given), (result, got)):
        size = ctypes.c_size_t(ctypes.sizeof(array))
        check(cuda.cuMemAlloc_v2(ctypes.byref(memory), size), "cuMemAlloc")
        check(cuda.cuMemcpyHtoD_v2(memory, array, size), "cuMemcpyHtoD")
    arguments = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (x, result, count)))
    check(cuda.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, arguments, None), "casts")
    check(cuda.cuMemcpyDtoH_v2(got, result, ctypes.c_size_t(ctypes.sizeof(got))), "cuMemcpyDtoH")
    wrong = 0
    for at, value in enumerate(values):
        for form in range(8):
            name, lowest, highest = INTEGERS[form // 2]
            wanted = integer_of(value, lowest, highest, form % 2 == 1)
            if got[8 * at + form] != wanted:
                wrong += 1
                rounding = ", toward_zero" * (form % 2)
                print(f"cast({value!r}, {name}{rounding}): {got[8 * at + form]} for {wanted}")
    print(f"{8 * len(values)} casts of doubles to integers, {wrong} wrong")
    return wrong


def library(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise SystemExit("not found: " + ", ".join(names))


def check(result, what):
    if result != 0:
        raise SystemExit(f"{what}: error {result}")


def compile_source(source, architecture):
    nvrtc = library("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                    "/usr/local/cuda/lib64/libnvrtc.so.13")
    program = ctypes.c_void_p()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"sweep.cu", 0, None, None),
          "nvrtcCreateProgram")
    words = [f"--gpu-architecture={architecture}", "--std=c++20", f"-I{ROOT}/src", f"-I{ROOT}/include"]
    options = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
    result = nvrtc.nvrtcCompileProgram(program, len(words), options)
    size = ctypes.c_size_t()
    if result != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.value.decode())
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin


def main():
    cuda = library("libcuda.so.1")
    check(cuda.cuInit(0), "cuInit")
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    operations = rows()
    source = SOURCE + CASTS + "".join(body(*row) for row in operations)
    cubin = compile_source(source, "sm_90a")
    check(cuda.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
    worst = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(worst), ctypes.c_size_t(24)), "cuMemAlloc")
    failures = 0
    for name, arity, relative, absolute in operations:
        function = ctypes.c_void_p()
        check(cuda.cuModuleGetFunction(ctypes.byref(function), module, f"sweep_{name}".encode()), name)
        check(cuda.cuMemsetD8_v2(worst, ctypes.c_ubyte(0), ctypes.c_size_t(24)), "cuMemsetD8")
        count = ctypes.c_uint64(1 << 32 if arity == 1 else 1 << 31)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(worst), ctypes.addressof(count))
        check(cuda.cuLaunchKernel(function, 132 * 8, 1, 1, 256, 1, 1, 0, None, arguments, None), name)
        result = (ctypes.c_uint64 * 3)()
        check(cuda.cuMemcpyDtoH_v2(result, worst, ctypes.c_size_t(24)), name)
        ratio = ctypes.c_float.from_buffer_copy(ctypes.c_uint32(result[0] >> 32)).value
        holds = ratio <= 1 and result[1] == 0
        failures += not holds
        print(f"{name:14} declared {relative:g} relative, {absolute:g} absolute: worst "
              f"{ratio:.3f} of it at {result[0] & 0xffffffff:#010x}; special values wrong: "
              f"{result[1]}" + (f" (one at {result[2] & 0xffffffff:#010x})" if result[1] else "") +
              ("" if holds else "   EXCEEDED"), flush=True)
    print(f"{len(operations)} operations, {failures} beyond what is declared")
    return 1 if failures + count_wrong_casts(cuda, module) else 0


if __name__ == "__main__":
    sys.exit(main())
