// SPDX-License-Identifier: Apache-2.0
// The memory layout of DLPack 1.x, as its specification publishes it, under names of our own: for
// those who read or write such tensors without a copy of dlpack.h. dlpack.hpp forward-declares its
// names.
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

inline constexpr std::uint64_t flag_read_only = 1;
inline constexpr std::uint64_t flag_copied = 2;           // this memory is not shared
inline constexpr std::uint64_t flag_padded_elements = 4;  // a byte for every element below 8 bits

struct ManagedVersionedLayout {
  Version version;
  void* context;
  void (*deleter)(ManagedVersionedLayout* self);
  std::uint64_t flags;
  TensorLayout tensor;
};

// The table of C functions that a framework offers as `type(tensor).__dlpack_c_exchange_api__`: its
// address, or a capsule of this name.
inline constexpr const char* exchange_capsule_name = "dlpack_exchange_api";

struct ExchangeApi {
  Version version;
  ExchangeApi* previous;  // of an older major version
  void* allocate;
  int (*managed_from_object)(void* object, ManagedVersionedLayout** managed);
  int (*managed_to_object)(ManagedVersionedLayout* managed, void** object);
  int (*view_of_object)(void* object, TensorLayout* view);  // may be null
  int (*current_stream)(std::int32_t device_type, std::int32_t device_index, void** stream);
};

static_assert(sizeof(TensorLayout) == 48 && sizeof(ManagedLayout) == 64 &&
              sizeof(ManagedVersionedLayout) == 80 && sizeof(ExchangeApi) == 56);

}  // namespace gemmery::dlpack
