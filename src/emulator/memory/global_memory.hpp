// SPDX-License-Identifier: Apache-2.0
// The memory of an emulated device: allocations of exact size with gaps in between, their bytes,
// and a shadow of each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "emulator/check/fault.hpp"
#include "emulator/check/publication.hpp"
#include "emulator/check/shadow.hpp"
#include "emulator/memory/address.hpp"
#include "emulator/memory/lane_access.hpp"

namespace gemmery::emulator {

// Thread-safe: kernels run on several threads, and hosts copy meanwhile. Addresses are in
// the memory's range; allocations are aligned to 256 bytes.
class GlobalMemory {
 public:
  // `limit_bytes`: the device's total memory.
  explicit GlobalMemory(std::uint64_t limit_bytes, AddressRange range = {});
  ~GlobalMemory();

  // Allocates unwritten memory; 0 if the limit is reached.
  std::uint64_t allocate(std::uint64_t bytes);
  // Allocates zeros that the host accesses at the same address; they count as written. 0 if the
  // limit is reached or the host has no room there.
  std::uint64_t allocate_mapped(std::uint64_t bytes);
  // Gives bytes of the host, which stay the caller's, an address; they count as written.
  std::uint64_t adopt(void* data, std::uint64_t bytes);
  bool free(std::uint64_t address);  // false: not the start of an allocation
  // malloc and free of kernels. Allocates unwritten memory; 0 if the heap is full.
  std::uint64_t allocate_from_heap(std::uint64_t bytes);
  bool free_to_heap(std::uint64_t address);  // false: not the start of an allocation of the heap
  void set_heap_bytes(std::uint64_t bytes) noexcept;
  std::uint64_t used_bytes() const noexcept;
  // The allocation that contains an address.
  struct Extent {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  std::optional<Extent> find(std::uint64_t address) const noexcept;
  // Addresses of the other memory are valid in this one from now on, or no longer. The other one
  // has its own address range and outlives this one.
  void add_peer(GlobalMemory& other);
  void remove_peer(GlobalMemory& other);

  // --- by the host -------------------------------------------------------------------------------
  // False, without any effect, if a byte is outside of an allocation. Copies between allocations
  // preserve which bytes were written.
  [[nodiscard]] bool copy_in(std::uint64_t to, const void* from, std::uint64_t bytes);
  [[nodiscard]] bool copy_out(void* to, std::uint64_t from, std::uint64_t bytes) const;
  [[nodiscard]] bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  [[nodiscard]] bool fill(std::uint64_t to, std::uint8_t value, std::uint64_t bytes);
  // Zeros that count as unwritten, as after an allocation.
  [[nodiscard]] bool make_unwritten(std::uint64_t address, std::uint64_t bytes);
  // The number of unwritten bytes among these; 0 if any is outside of an allocation.
  std::uint64_t count_unwritten(std::uint64_t address, std::uint64_t bytes) const;
  // Called when a kernel starts: it does not conflict with accesses of earlier kernels.
  void forget_accesses();

  // --- by kernels --------------------------------------------------------------------------------
  // Throw Fault: out_of_bounds with the nearest allocation and by how many bytes, misaligned, race.
  // `who.lane` is replaced by the lane of each access. `to`/`from`: lane l's bytes at l * stride.
  // Returns the lanes all of whose bytes were written before. If these are not all active lanes and
  // `written` is not null, bit i of written[l] says whether byte i of active lane l was written.
  std::uint32_t load(const LaneAccess& access, Accessor who, void* to, std::uint32_t stride,
                     std::uint32_t* written = nullptr);
  // `defined`: lanes whose value is defined; the bytes of others then count as unwritten, except
  // those whose bits are set in `written` (by lane, may be null). Lanes that store the same value
  // to the same address count as one.
  void store(const LaneAccess& access, Accessor who, const void* from, std::uint32_t stride,
             std::uint32_t defined, const std::uint32_t* written = nullptr);
  // Contiguous bytes, for asynchronous copies; `written` (may be null) receives a bit per byte for
  // reads of up to 64 bytes at a time.
  void read_bytes(std::uint64_t address, std::uint32_t bytes, const Accessor& who, void* to,
                  std::uint64_t* written);
  void write_bytes(std::uint64_t address, std::uint32_t bytes, const Accessor& who,
                   const void* from);
  // Marks bytes as unwritten.
  void discard(std::uint64_t address, std::uint32_t bytes, const Accessor& who);
  // One lane's read-modify-write, atomic for all host threads: `apply(value, operand)` replaces the
  // `bytes` bytes (2 to 16) at `value`, naturally aligned. Returns whether the old value was
  // written before.
  bool update(std::uint64_t address, std::uint32_t bytes, Accessor who, LaneUpdate apply,
              const void* operand, void* old, UpdateDefinedness defined = {});
  // Releases by address: published by strong accesses of this launch.
  PublicationTable& publications() noexcept;

 private:
  struct Allocation;
  struct Insides;
  std::unique_ptr<Insides> insides_;
};

}  // namespace gemmery::emulator
