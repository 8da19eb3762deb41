// SPDX-License-Identifier: Apache-2.0
// Finds the slots of an imported function in the tables that the loader filled (System V ABI,
// "Dynamic Section"), and writes another address into them.
#include "platform/imported_function.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gemmery::platform {
namespace {

using Relocation = ElfW(Rela);

#if defined(__x86_64__)
constexpr std::array<std::uint64_t, 2> address_types{R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT};
#elif defined(__aarch64__)
constexpr std::array<std::uint64_t, 2> address_types{R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT};
#else
constexpr std::array<std::uint64_t, 0> address_types{};
#endif

// --- the tables ---------------------------------------------------------------------------------

struct Imports {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const Relocation> called;  // calls through the procedure linkage table
  std::span<const Relocation> others;
};

// The loader writes addresses into a writable dynamic section; a read-only one holds offsets.
template <class Entry>
const Entry* table_at(const link_map& map, ElfW(Addr) place) {
  return reinterpret_cast<const Entry*>(place < map.l_addr ? map.l_addr + place : place);
}

Imports read_imports(const link_map& map) {
  Imports imports;
  const Relocation* called = nullptr;
  const Relocation* others = nullptr;
  std::size_t called_bytes = 0;
  std::size_t other_bytes = 0;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        imports.symbols = table_at<ElfW(Sym)>(map, entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        imports.names = table_at<char>(map, entry->d_un.d_ptr);
        break;
      case DT_JMPREL:
        called = table_at<Relocation>(map, entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        called_bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        others = table_at<Relocation>(map, entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        other_bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (called != nullptr) imports.called = {called, called_bytes / sizeof(Relocation)};
  if (others != nullptr) imports.others = {others, other_bytes / sizeof(Relocation)};
  return imports;
}

bool is_of(const Imports& imports, const Relocation& relocation, std::string_view name) {
  for (const std::uint64_t type : address_types) {
    if (ELF64_R_TYPE(relocation.r_info) == type)
      return imports.names + imports.symbols[ELF64_R_SYM(relocation.r_info)].st_name == name;
  }
  return false;
}

using Slot = const void*;

// The slots where the library keeps the function's address.
std::vector<Slot*> slots_of(const link_map& map, std::string_view name) {
  const Imports imports = read_imports(map);
  std::vector<Slot*> slots;
  if (imports.symbols == nullptr || imports.names == nullptr) return slots;
  for (const std::span<const Relocation> relocations : {imports.called, imports.others}) {
    for (const Relocation& relocation : relocations) {
      if (is_of(imports, relocation, name))
        slots.push_back(reinterpret_cast<Slot*>(map.l_addr + relocation.r_offset));
    }
  }
  return slots;
}

// --- what is read-only once the library is loaded -----------------------------------------------

struct ReadOnlyLook {
  const link_map& map;
  ElfW(Addr) address;
  bool is_read_only = false;
};

int look_at_object(dl_phdr_info* object, std::size_t, void* data) {
  ReadOnlyLook& look = *static_cast<ReadOnlyLook*>(data);
  if (object->dlpi_addr != look.map.l_addr) return 0;
  for (const ElfW(Phdr) & header : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    const ElfW(Addr) begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_RELRO && begin <= look.address &&
        look.address < begin + header.p_memsz)
      look.is_read_only = true;
  }
  return 1;
}

bool is_read_only(const link_map& map, const Slot* slot) {
  ReadOnlyLook look{map, reinterpret_cast<ElfW(Addr)>(slot)};
  dl_iterate_phdr(look_at_object, &look);
  return look.is_read_only;
}

bool protect_page_of(Slot* slot, int protection) {
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(slot) & ~(page_bytes - 1);
  return mprotect(reinterpret_cast<void*>(page), page_bytes, protection) == 0;
}

// Other threads may call through the slot meanwhile.
bool write_slot(const link_map& map, Slot* slot, const void* function) {
  const bool was_read_only = is_read_only(map, slot);
  if (was_read_only && !protect_page_of(slot, PROT_READ | PROT_WRITE)) return false;
  std::atomic_ref(*slot).store(function, std::memory_order_release);
  if (was_read_only) protect_page_of(slot, PROT_READ);
  return true;
}

// --- libraries ----------------------------------------------------------------------------------

const link_map* map_of(const void* address) {
  Dl_info place{};
  void* map = nullptr;
  const bool is_known = dladdr1(address, &place, &map, RTLD_DL_LINKMAP) != 0;
  return is_known ? static_cast<const link_map*>(map) : nullptr;
}

// The program itself has no name and is never unloaded.
void keep_loaded(const void* address) {
  const link_map* const map = map_of(address);
  if (map != nullptr && map->l_name != nullptr && map->l_name[0] != '\0')
    dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

bool redirect_import(const void* address, const char* name, const void* replacement) {
  const link_map* const map = map_of(address);
  if (map == nullptr) return false;
  const std::vector<Slot*> slots = slots_of(*map, name);
  if (slots.empty()) return false;
  keep_loaded(replacement);
  for (Slot* const slot : slots) {
    if (!write_slot(*map, slot, replacement)) return false;
  }
  return true;
}

}  // namespace gemmery::platform
