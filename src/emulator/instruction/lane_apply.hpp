// SPDX-License-Identifier: Apache-2.0
// Makes the handler of an instruction from a function of one lane's values: one loop over the lanes
// that compilers vectorise. Slot 0 is the destination; the sources follow in order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/machine/operation.hpp"
#include "emulator/machine/warp.hpp"

// Lane vectors are identical or disjoint, so no iteration depends on another.
#if defined(__clang__)
#define GEMMERY_EACH_LANE _Pragma("clang loop vectorize(assume_safety)")
#else
#define GEMMERY_EACH_LANE _Pragma("GCC ivdep")
#endif

namespace gemmery::emulator {

// --- values in lane vectors ----------------------------------------------------------------------

template <class T>
using StoredLane = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
inline T load_lane(StoredLane<T> bits) noexcept {
  if constexpr (sizeof(T) == 1)
    return std::bit_cast<T>(static_cast<std::uint8_t>(bits));
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<T>(static_cast<std::uint16_t>(bits));
  else
    return std::bit_cast<T>(bits);
}
template <class T>
inline StoredLane<T> store_lane(T value) noexcept {
  if constexpr (sizeof(T) == 1)
    return std::bit_cast<std::uint8_t>(value);
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<std::uint16_t>(value);
  else
    return std::bit_cast<StoredLane<T>>(value);
}

// A source with the same value in all lanes, such as an immediate.
template <class T>
struct Uniform {
  T value;
};
// A source that is a predicate.
struct Predicate {
  bool value;
};

// Reads one source operand lane by lane.
template <class T>
struct LaneReader {
  const StoredLane<T>* at;
  LaneReader(const Warp& warp, const Operation& operation, std::size_t slot) noexcept
      : at(warp.source<StoredLane<T>>(operation, slot)) {}
  T operator()(int lane) const noexcept { return load_lane<T>(at[lane]); }
};
template <class T>
struct LaneReader<Uniform<T>> {
  Uniform<T> value;
  LaneReader(const Warp& warp, const Operation& operation, std::size_t slot) noexcept
      : value{load_lane<T>(*warp.source<StoredLane<T>>(operation, slot))} {}
  Uniform<T> operator()(int) const noexcept { return value; }
};
template <>
struct LaneReader<Predicate> {
  LaneMask mask;
  LaneReader(const Warp& warp, const Operation& operation, std::size_t slot) noexcept
      : mask(*warp.source<LaneMask>(operation, slot)) {}
  Predicate operator()(int lane) const noexcept { return {((mask >> lane) & 1) != 0}; }
};

// --- blending ------------------------------------------------------------------------------------

template <class Stored>
inline constexpr auto lane_bits = [] {
  std::array<Stored, lanes_per_warp> bits{};
  for (int lane = 0; lane < lanes_per_warp; ++lane)
    bits[static_cast<std::size_t>(lane)] = Stored{1} << lane;
  return bits;
}();

// Active lanes receive the new values; the others keep theirs.
template <class Stored>
inline void blend(Stored* to, const Stored* made, LaneMask active) noexcept {
  const Stored mask = active;
  GEMMERY_EACH_LANE
  for (int lane = 0; lane < lanes_per_warp; ++lane) {
    const Stored bit = lane_bits<Stored>[static_cast<std::size_t>(lane)];
    const Stored takes = 0 - static_cast<Stored>((mask & bit) == bit);
    to[lane] = (made[lane] & takes) | (to[lane] & ~takes);
  }
}
inline void blend_predicate(LaneMask* to, LaneMask made, LaneMask active) noexcept {
  *to = (*to & ~active) | (made & active);
}

// Calls `write` with the destination of a whole lane vector of T and copies its active lanes to
// `slot`.
template <class T, class Write>
inline void write_lanes(Warp& warp, const Operation& operation, std::size_t slot, LaneMask active,
                        Write write) {
  StoredLane<T>* const to = warp.destination<StoredLane<T>>(operation, slot);
  if (active == all_lanes) {
    write(to);
    return;
  }
  alignas(64) StoredLane<T> made[lanes_per_warp];
  write(made);
  blend(to, made, active);
}

// --- handlers ------------------------------------------------------------------------------------

// A lane function has the signature Result(Sources...), or Result(const Operation&, Sources...) if
// it needs the modifiers that the decoder put in `flags` and `immediate`.
template <class Function>
struct LaneSignature;
template <class R, class... S>
struct LaneSignature<R (*)(S...)> {
  using Result = R;
  using Sources = std::tuple<S...>;
  static constexpr bool takes_operation = false;
};
template <class R, class... S>
struct LaneSignature<R (*)(const Operation&, S...)> {
  using Result = R;
  using Sources = std::tuple<S...>;
  static constexpr bool takes_operation = true;
};
template <auto function>
using SignatureOf = LaneSignature<decltype(+function)>;

template <auto function, class... Readers>
inline auto call_lane(const Operation& operation, int lane, const Readers&... readers) noexcept {
  if constexpr (SignatureOf<function>::takes_operation)
    return function(operation, readers(lane)...);
  else
    return function(readers(lane)...);
}

template <auto function, class Result, class... Readers>
inline void fill_lanes(StoredLane<Result>* to, const Operation& operation,
                       const Readers... readers) noexcept {
  GEMMERY_EACH_LANE
  for (int lane = 0; lane < lanes_per_warp; ++lane)
    to[lane] = store_lane<Result>(call_lane<function>(operation, lane, readers...));
}
template <auto function, class... Readers>
inline LaneMask collect_lanes(const Operation& operation, const Readers... readers) noexcept {
  LaneMask mask = 0;
  for (int lane = 0; lane < lanes_per_warp; ++lane) {
    const LaneMask holds = call_lane<function>(operation, lane, readers...);
    mask |= (0 - holds) & lane_bits<LaneMask>[static_cast<std::size_t>(lane)];
  }
  return mask;
}

// The same, with the sources' types as a template argument.
template <auto function, class Sources = typename SignatureOf<function>::Sources>
struct LaneLoop;
template <auto function, class... Sources>
struct LaneLoop<function, std::tuple<Sources...>> {
  using Result = typename SignatureOf<function>::Result;
  template <std::size_t... index>
  static void fill(StoredLane<Result>* to, const Warp& warp, const Operation& operation,
                   std::index_sequence<index...>) noexcept {
    fill_lanes<function, Result>(to, operation, LaneReader<Sources>(warp, operation, index + 1)...);
  }
  template <std::size_t... index>
  static LaneMask collect(const Warp& warp, const Operation& operation, std::size_t first,
                          std::index_sequence<index...>) noexcept {
    return collect_lanes<function>(operation,
                                   LaneReader<Sources>(warp, operation, index + first)...);
  }
  using Indices = std::index_sequence_for<Sources...>;
};

// Handler of a function that returns a value, which goes to slot 0.
template <auto function>
Step run_lanes(Warp& warp, const Operation& operation, LaneMask active) {
  using Loop = LaneLoop<function>;
  using Result = typename Loop::Result;
  write_lanes<Result>(warp, operation, 0, active, [&](StoredLane<Result>* to) {
    Loop::fill(to, warp, operation, typename Loop::Indices());
  });
  return Step::next;
}

// Returns the lanes for which a function returns true; its sources begin at slot `first`.
template <auto function>
LaneMask lanes_where(const Warp& warp, const Operation& operation, std::size_t first) {
  using Loop = LaneLoop<function>;
  return Loop::collect(warp, operation, first, typename Loop::Indices());
}

}  // namespace gemmery::emulator
