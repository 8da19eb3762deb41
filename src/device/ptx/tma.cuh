// SPDX-License-Identifier: Apache-2.0
// The tensor memory accelerator of sm_90: boxes of a tensor of three dimensions, or of four
// (abi/pointer_array.hpp), between global and shared memory, one instruction per function.
#pragma once

#include <device/abi/sm90_params.hpp>

namespace gemmery::device::ptx {

/// The position of a box, the contiguous index first.
struct BoxPlace {
  int adjacent;
  int row;
  int batch;
};

/// The same with two dimensions in place of the batch (abi/pointer_array.hpp).
struct FarBoxPlace {
  int adjacent;
  int row;
  int near;
  int far;
};

/// The place of consecutive pixels, for a map in im2col mode: a channel, the first pixel, width
/// first, its image, and the offset of a tap, which is added to every pixel.
template <int dimensions>
struct PixelPlace {
  int channel;
  int image;
  int pixel[dimensions];
  unsigned short offset[dimensions];
};

__device__ inline void prefetch_tensormap(const abi::TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Copies a box; its bytes arrive at the mbarrier, including zeros for elements beyond the tensor.
__device__ inline void tma_load(unsigned shared, const abi::TensorMap& map, const BoxPlace& place,
                                unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4}], [%5];" ::"r"(shared),
      "l"(&map), "r"(place.adjacent), "r"(place.row), "r"(place.batch), "r"(barrier)
      : "memory");
}

__device__ inline void tma_load(unsigned shared, const abi::TensorMap& map,
                                const FarBoxPlace& place, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared),
      "l"(&map), "r"(place.adjacent), "r"(place.row), "r"(place.near), "r"(place.far), "r"(barrier)
      : "memory");
}

/// The same to the same shared address in several blocks of the cluster, one mask bit per block;
/// the bytes arrive at the mbarrier of each block.
__device__ inline void tma_load_multicast(unsigned shared, const abi::TensorMap& map,
                                          const BoxPlace& place, unsigned barrier,
                                          unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared),
      "l"(&map), "r"(place.adjacent), "r"(place.row), "r"(place.batch), "r"(barrier), "h"(blocks)
      : "memory");
}

__device__ inline void tma_load_multicast(unsigned shared, const abi::TensorMap& map,
                                          const FarBoxPlace& place, unsigned barrier,
                                          unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(shared),
      "l"(&map), "r"(place.adjacent), "r"(place.row), "r"(place.near), "r"(place.far), "r"(barrier),
      "h"(blocks)
      : "memory");
}

/// Copies pixels; in the order of images, those that no image has and channels beyond the last are
/// zeros.
__device__ inline void tma_load(unsigned shared, const abi::TensorMap& map,
                                const PixelPlace<1>& place, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4}], [%5], {%6};" ::"r"(shared),
      "l"(&map), "r"(place.channel), "r"(place.pixel[0]), "r"(place.image), "r"(barrier),
      "h"(place.offset[0])
      : "memory");
}

__device__ inline void tma_load(unsigned shared, const abi::TensorMap& map,
                                const PixelPlace<2>& place, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(shared),
      "l"(&map), "r"(place.channel), "r"(place.pixel[0]), "r"(place.pixel[1]), "r"(place.image),
      "r"(barrier), "h"(place.offset[0]), "h"(place.offset[1])
      : "memory");
}

__device__ inline void tma_load(unsigned shared, const abi::TensorMap& map,
                                const PixelPlace<3>& place, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10};" ::"r"(shared),
      "l"(&map), "r"(place.channel), "r"(place.pixel[0]), "r"(place.pixel[1]), "r"(place.pixel[2]),
      "r"(place.image), "r"(barrier), "h"(place.offset[0]), "h"(place.offset[1]),
      "h"(place.offset[2])
      : "memory");
}

/// The same to several blocks.
__device__ inline void tma_load_multicast(unsigned shared, const abi::TensorMap& map,
                                          const PixelPlace<1>& place, unsigned barrier,
                                          unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], {%6}, %7;" ::"r"(shared),
      "l"(&map), "r"(place.channel), "r"(place.pixel[0]), "r"(place.image), "r"(barrier),
      "h"(place.offset[0]), "h"(blocks)
      : "memory");
}

__device__ inline void tma_load_multicast(unsigned shared, const abi::TensorMap& map,
                                          const PixelPlace<2>& place, unsigned barrier,
                                          unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8}, %9;" ::"r"(shared),
      "l"(&map), "r"(place.channel), "r"(place.pixel[0]), "r"(place.pixel[1]), "r"(place.image),
      "r"(barrier), "h"(place.offset[0]), "h"(place.offset[1]), "h"(blocks)
      : "memory");
}

__device__ inline void tma_load_multicast(unsigned shared, const abi::TensorMap& map,
                                          const PixelPlace<3>& place, unsigned barrier,
                                          unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10}, %11;" ::"r"(
          shared),
      "l"(&map), "r"(place.channel), "r"(place.pixel[0]), "r"(place.pixel[1]), "r"(place.pixel[2]),
      "r"(place.image), "r"(barrier), "h"(place.offset[0]), "h"(place.offset[1]),
      "h"(place.offset[2]), "h"(blocks)
      : "memory");
}

/// Writes a box; nothing beyond the tensor is written.
__device__ inline void tma_store(const abi::TensorMap& map, const BoxPlace& place,
                                 unsigned shared) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
          &map),
      "r"(place.adjacent), "r"(place.row), "r"(place.batch), "r"(shared)
      : "memory");
}

__device__ inline void tma_store(const abi::TensorMap& map, const FarBoxPlace& place,
                                 unsigned shared) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], "
      "[%5];" ::"l"(&map),
      "r"(place.adjacent), "r"(place.row), "r"(place.near), "r"(place.far), "r"(shared)
      : "memory");
}

/// Writes pixels, in the order of images; nothing behind the last one is written. No tap: offsets
/// are not used.
__device__ inline void tma_store(const abi::TensorMap& map, const PixelPlace<1>& place,
                                 unsigned shared) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group "
      "[%0, {%1, %2, %3}], [%4];" ::"l"(&map),
      "r"(place.channel), "r"(place.pixel[0]), "r"(place.image), "r"(shared)
      : "memory");
}

__device__ inline void tma_store(const abi::TensorMap& map, const PixelPlace<2>& place,
                                 unsigned shared) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group "
      "[%0, {%1, %2, %3, %4}], [%5];" ::"l"(&map),
      "r"(place.channel), "r"(place.pixel[0]), "r"(place.pixel[1]), "r"(place.image), "r"(shared)
      : "memory");
}

__device__ inline void tma_store(const abi::TensorMap& map, const PixelPlace<3>& place,
                                 unsigned shared) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.im2col_no_offs.bulk_group "
      "[%0, {%1, %2, %3, %4, %5}], [%6];" ::"l"(&map),
      "r"(place.channel), "r"(place.pixel[0]), "r"(place.pixel[1]), "r"(place.pixel[2]),
      "r"(place.image), "r"(shared)
      : "memory");
}

/// The same by one lane of a warp, only if the box begins at or before `last`; called by all lanes
/// and branch-free.
__device__ inline void tma_store_by_one(const abi::TensorMap& map, const BoxPlace& place,
                                        unsigned shared, int last) {
  asm volatile(
      "{ .reg .pred is_elected, is_to_store; elect.sync _|is_elected, 0xffffffff; "
      "setp.le.and.s32 is_to_store, %1, %5, is_elected; "
      "@is_to_store cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
      "[%0, {%1, %2, %3}], [%4]; }" ::"l"(&map),
      "r"(place.adjacent), "r"(place.row), "r"(place.batch), "r"(shared), "r"(last)
      : "memory");
}

__device__ inline void tma_store_by_one(const abi::TensorMap& map, const FarBoxPlace& place,
                                        unsigned shared, int last) {
  asm volatile(
      "{ .reg .pred is_elected, is_to_store; elect.sync _|is_elected, 0xffffffff; "
      "setp.le.and.s32 is_to_store, %1, %6, is_elected; "
      "@is_to_store cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
      "[%0, {%1, %2, %3, %4}], [%5]; }" ::"l"(&map),
      "r"(place.adjacent), "r"(place.row), "r"(place.near), "r"(place.far), "r"(shared), "r"(last)
      : "memory");
}

__device__ inline void bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until all but `pending` of this thread's groups have read their shared memory.
template <int pending>
__device__ inline void bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

}  // namespace gemmery::device::ptx
