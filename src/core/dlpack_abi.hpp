// SPDX-License-Identifier: Apache-2.0
// The memory layout of DLPack 1.x, as its specification publishes it. Our own names; the public
// header forward-declares theirs.
#pragma once

#include <cstdint>

namespace gemmery::dlpack {

inline constexpr std::uint32_t supported_major_version = 1;

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct DeviceCode {
  std::int32_t type;
  std::int32_t index;
};
inline constexpr std::int32_t device_cpu = 1;
inline constexpr std::int32_t device_cuda = 2;
inline constexpr std::int32_t device_cuda_host = 3;
inline constexpr std::int32_t device_cuda_managed = 13;

struct TypeCode {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct TensorLayout {
  void* data;
  DeviceCode device;
  std::int32_t rank;
  TypeCode dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // nullptr: row major
  std::uint64_t byte_offset;
};

struct ManagedLayout {
  TensorLayout tensor;
  void* context;
  void (*deleter)(ManagedLayout* self);
};

struct ManagedVersionedLayout {
  Version version;
  void* context;
  void (*deleter)(ManagedVersionedLayout* self);
  std::uint64_t flags;
  TensorLayout tensor;
};

static_assert(sizeof(TensorLayout) == 48 && sizeof(ManagedLayout) == 64 &&
              sizeof(ManagedVersionedLayout) == 80);

}  // namespace gemmery::dlpack
