// SPDX-License-Identifier: Apache-2.0
// What this module reads of DLPack beside the tensors themselves, laid out as its specification
// publishes it: flags of versioned tensors, and the table of C functions that a framework offers.
#pragma once

#include <cstdint>

#include <gemmery/dlpack.hpp>

namespace gemmery::python::dlpack {

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

inline constexpr std::int32_t device_cpu = 1;
inline constexpr std::int32_t device_cuda = 2;

struct TensorLayout {
  void* data;
  std::int32_t device_type;
  std::int32_t device_index;
  std::int32_t rank;
  std::uint8_t type_code;
  std::uint8_t type_bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

struct ManagedLayout {
  TensorLayout tensor;
  void* context;
  void (*deleter)(ManagedLayout* self);
};

inline constexpr std::uint64_t flag_read_only = 1;

struct ManagedVersionedLayout {
  Version version;
  void* context;
  void (*deleter)(ManagedVersionedLayout* self);
  std::uint64_t flags;
  TensorLayout tensor;
};

// `type(tensor).__dlpack_c_exchange_api__`: the address of one, or a capsule of this name.
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

static_assert(sizeof(TensorLayout) == 48 && sizeof(ManagedVersionedLayout) == 80 &&
              sizeof(ManagedLayout) == 64 && sizeof(ExchangeApi) == 56);

}  // namespace gemmery::python::dlpack
