// SPDX-License-Identifier: Apache-2.0
// From tiles to clocks of one multiprocessor, and from clocks to time: utilisation determines the
// clock rate and what memory must deliver.
#include "model/warp_specialized_gemm.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "model/concurrent_work.hpp"
#include "operation/convolution.hpp"

namespace gemmery::model {
namespace {

constexpr double wgmma_rows = 64;
// A wgmma of 64 rows multiplies 16-bit operands of 32 bytes of k at 1/2 clock per column (probe,
// H200).
constexpr double wgmma_k_bytes = 32;
constexpr double clocks_per_column = 0.5;
// Shared memory's bytes per clock (probe, H200).
constexpr double shared_bytes_per_clock = 128;

// The wait of a staging tile for C in memory: 4096^3 in cooperative tiles of 128x256 took 217 us
// with C and 196 without, at 4 tiles of 4 staging tiles per multiprocessor, before C was prefetched
// (H200, sm90v2). A prefetched one takes as long as a program's input (`input_staging_clocks`).
constexpr double c_staging_clocks = 2300;

// A warp's clocks per instruction of an epilogue and per result of the special function unit;
// clocks per instruction by which a warpgroup in its epilogue slows down the one in its mainloop;
// clocks that a staging tile waits for a full input. Fitted by eye to races of designs with six
// epilogues at eleven sizes (bench/results/h200-epilogues-rotation.md). The cost of an instruction
// per tile, whatever its size: at 8192x8192x1024 bias + gelu costs 9 us with 128x192 (21 tiles per
// multiprocessor) and 15 us with 128x128 (32 tiles; sm90v4). With three groups in turn this
// overlaps other groups' products, which bursts of arithmetic delay (h200-epilogues-rotation.md).
constexpr double program_clocks = 0.85;
constexpr double slow_result_clocks = 9;
constexpr double program_interference_clocks = 0.4;
// In rotation two groups run their epilogues while a third multiplies. Dense arithmetic gets only
// the clocks that the products leave, where an instruction takes longer, and more so during stores
// (clock stamps, h200-epilogues-addend.md).
constexpr double rotation_program_clocks = 6.5;
constexpr double rotation_slow_clocks = 15;
constexpr double rotation_store_clocks = 3;
constexpr double dense_interference_clocks = 0.12;
constexpr double input_staging_clocks = 860;
constexpr double program_tile_clocks = 50;
constexpr double program_burst_clocks = 25;
// The k of the product by which a vector is added, and the 16-bit products of a multiprocessor per
// clock.
constexpr double addend_k = 16;
constexpr double macs_per_clock = 2048;
constexpr double threads_of_consumer = 128;
// Elements that a multiprocessor's four schedulers process at a time, a warp each.
constexpr double elements_at_once = 128;

constexpr double sum_bytes = 4;
// Share of the multiprocessors that clusters of 4 and more can use, since they do not fill the
// GPCs: 30 clusters of 4 run at a time on 132, and 32 take twice as long (split k, H200).
constexpr double usable_by_large_clusters = 10.0 / 11;

// For whole numbers: just below x + size there is no multiple of `size`, so the inverse's rounding
// is harmless below 2^40. std::ceil is a function call if the compiler may not use SSE 4.1.
double divide_up(double x, const WarpSpecializedTerms::Divisor& by) {
  return static_cast<double>(static_cast<std::int64_t>((x + by.size - 0.5) * by.inverse));
}

constexpr WarpSpecializedTerms::Divisor divisor(double size) { return {size, 1 / size}; }

std::int64_t pitch_bytes(const MatrixType& matrix) {
  return std::max(std::abs(matrix.row_stride), std::abs(matrix.column_stride)) *
         bit_width(matrix.dtype) / 8;
}

// True if rows (or columns) may begin in the middle of the 32-byte sectors in which the cache is
// accessed: every second one does then, since they begin at multiples of 16.
bool splits_sectors(const MatrixType& matrix) { return pitch_bytes(matrix) % 32 != 0; }

constexpr std::int64_t line_bytes = 128;  // of the cache; a stage has a line's bytes of k

// Share of the multiples of this many bytes that are not multiples of a line.
double share_amid_lines(std::int64_t bytes) {
  return 1 - static_cast<double>(std::gcd(bytes, line_bytes)) / line_bytes;
}

// The factor by which split sectors slow down reading.
double read_splits(const MatrixType& matrix, const WarpSpecializedConstants& constants) {
  return 1 + constants.split_sector_share * splits_sectors(matrix) +
         constants.split_line_share * share_amid_lines(pitch_bytes(matrix));
}

// The smallest number of elements that a copy loads along rows (or columns) that are not along k:
// 128 bytes.
double box_of(bool is_along_k, double element_bytes) {
  constexpr double box_bytes = 128;
  return is_along_k ? 1 : box_bytes / element_bytes;
}

// How often a panel is read from memory if it is used `times`: once while it stays in the cache,
// which becomes unlikely between half and one and a half of the cache's size.
double reads(double times, double cache_share) {
  const double lost = std::clamp(cache_share - 0.5, 0.0, 1.0);
  return 1 + (std::max(times, 1.0) - 1) * lost;
}

}  // namespace

// The grid in tiles of clusters, and how many run at a time.
struct WarpSpecializedModel::Grid {
  double rows;     // of clusters
  double columns;  // of clusters
  double tiles;    // of clusters
  double resident;
  double tiles_each;     // of the busiest multiprocessor
  double missing_share;  // of the last wave's tiles
  double active;         // multiprocessors at work
  double k_blocks;       // of a block's share
  double bands;
  double waves;  // of a band
  // Clusters that read the same part, at the same time, of the operand that a band keeps, and of
  // the other one.
  double kept_sharers;
  double other_sharers;
  // Rows and columns that a block reads: fewer than its tile has if the problem ends within it.
  double read_rows;
  double read_columns;
};

struct WarpSpecializedModel::TileClocks {
  double multiply;      // until the last product
  double store;         // from there until out is on its way, without an epilogue
  double program;       // the epilogue in between
  double rotation;      // the epilogue and the store, while two other groups work
  double interference;  // the delay that it causes to other groups' products
  double input;         // waiting for its inputs
};

WarpSpecializedTerms::WarpSpecializedTerms(const WarpSpecializedDesign& design) noexcept
    : cluster_rows(divisor(design.tile_m * design.cluster_m)),
      cluster_columns(divisor(design.tile_n * design.cluster_n)),
      cluster_k(divisor(design.tile_k * design.split_k)),
      cluster_m(divisor(design.cluster_m)),
      cluster_n(divisor(design.cluster_n)),
      cluster_size(divisor(design.cluster_m * design.cluster_n * design.split_k)),
      band(divisor(design.band_tiles)),
      stages_inverse(1.0 / design.stages),
      tall(design.tile_m >= 256 ? 1 : 0),
      stage_bytes(design.stage_bytes),
      tile_k(design.tile_k),
      tile_m(design.tile_m),
      tiles_amid_lines(share_amid_lines(line_bytes * design.tile_n / design.tile_k)),
      stored_columns(static_cast<double>(design.tile_n) / design.split_k),
      other_blocks(design.split_k - 1),
      sums_from_others(stored_columns * other_blocks),
      staging_tiles_per_byte(1 / (static_cast<double>(design.staging_bytes) * design.consumers)),
      usable_share(cluster_size.size > 2 ? usable_by_large_clusters : 1),
      turns(design.turns),
      turns_inverse(1.0 / design.turns),
      addend_clocks(design.adds_vector ? design.tile_m * design.tile_n * addend_k / macs_per_clock
                                       : 0),
      transposed_kib(design.transposed_bytes / (1024.0 * design.consumers)),
      splits(design.products > 1),
      promoted_sums(design.is_promoted
                        ? design.tile_m * design.tile_n / (threads_of_consumer * design.consumers)
                        : 0),
      promotions(design.promotions),
      scale_products(design.scale_products),
      consumer_share(1.0 / design.consumers),
      takes_registers(design.takes_registers),
      decoded_rows(design.decoded_rows),
      is_scaled(design.is_scaled),
      prefetches_inputs(design.prefetches_inputs),
      is_clustered(cluster_size.size > 1),
      is_band_of_rows(design.is_band_of_rows),
      adds_vector(design.adds_vector) {
  const double areas =
      design.products * design.tile_m / wgmma_rows * design.tile_n / design.wgmma_columns;
  k_columns = areas * design.tile_k * design.wgmma_columns;
  k_area_sides = areas * design.tile_k * (wgmma_rows + design.wgmma_columns);
}

double WarpSpecializedParts::total_us() const noexcept {
  return fill_us + beside(compute_us, memory_us);
}

WarpSpecializedModel::WarpSpecializedModel(const GemmProblem& problem, bool is_turned,
                                           const DeviceInfo& device,
                                           const WarpSpecializedConstants& constants,
                                           const ProgramWork& program) noexcept
    : constants_(constants),
      program_(program),
      rows_(static_cast<double>(is_turned ? problem.n : problem.m)),
      columns_(static_cast<double>(is_turned ? problem.m : problem.n)),
      k_(static_cast<double>(problem.k)),
      batches_(static_cast<double>(problem.l)),
      element_bytes_(std::max(bit_width(problem.a.dtype), bit_width(problem.b.dtype)) / 8.0),
      row_element_bytes_(bit_width((is_turned ? problem.b : problem.a).dtype) / 8.0),
      column_element_bytes_(bit_width((is_turned ? problem.a : problem.b).dtype) / 8.0),
      out_element_bytes_(bit_width(problem.out.dtype) / 8.0),
      has_c_(problem.c.has_value()),
      has_adjacent_c_(has_c_ &&
                      (is_turned ? problem.c->row_stride : problem.c->column_stride) == 1),
      multiprocessors_(std::max(device.multiprocessors, 1)) {
  const auto copies = [&](const MatrixType& matrix) {
    return matrix.batch_stride == 0 ? 1.0 : batches_;
  };
  // Taps of a convolution read the same elements.
  const double of_a = bit_width(problem.a.dtype) / 8.0;
  const double of_b = bit_width(problem.b.dtype) / 8.0;
  const double a = problem.convolution
                       ? operation::conv_bytes(problem, true)
                       : static_cast<double>(problem.m) * k_ * of_a * copies(problem.a);
  const double b = problem.convolution
                       ? operation::conv_bytes(problem, false)
                       : static_cast<double>(problem.n) * k_ * of_b * copies(problem.b);
  a_bytes_ = is_turned ? b : a;
  b_bytes_ = is_turned ? a : b;
  const double c_element_bytes = problem.c ? bit_width(problem.c->dtype) / 8.0 : 0.0;
  out_bytes_ = rows_ * columns_ * batches_ * (out_element_bytes_ + c_element_bytes) + program.bytes;
  const double a_box = box_of(problem.a.column_stride == 1, of_a);
  const double b_box = box_of(problem.b.row_stride == 1, of_b);
  a_box_ = is_turned ? b_box : a_box;
  b_box_ = is_turned ? a_box : b_box;
  const double a_splits = read_splits(problem.a, constants);
  const double b_splits = read_splits(problem.b, constants);
  a_splits_ = is_turned ? b_splits : a_splits;
  b_splits_ = is_turned ? a_splits : b_splits;
  out_splits_ = 1 + constants.split_store_share * splits_sectors(problem.out);

  const double bytes_per_us = device.bandwidth_bytes_per_second * constants.memory_share / 1e6;
  rates_.memory_us_per_byte = 1 / bytes_per_us;
  clock_ghz_ = settled_clock_ghz(problem, device);
  rates_.us_per_clock = 1 / (clock_ghz_ * 1e3);
  rates_.load_clocks = constants.load_ns * clock_ghz_;
  rates_.cluster_load_clocks = constants.cluster_load_ns * clock_ghz_;
  rates_.load_clocks_per_byte = clock_ghz_ / (constants.load_bytes_per_ns * multiprocessors_);
  rates_.queue_share = constants.queue_share / multiprocessors_;
  rates_.store_clocks_per_byte = 1 / constants.store_bytes_per_clock;
  rates_.per_l2_byte = 1 / (static_cast<double>(device.l2_bytes) * constants.l2_share);
}

// Power limits the board, and the power depends on the share of time in which tensor cores are
// busy. This depends on the problem, not on the design: the clock adapts within milliseconds, so to
// all kernels that run.
double WarpSpecializedModel::settled_clock_ghz(const GemmProblem& problem,
                                               const DeviceInfo& device) const noexcept {
  const double fma_per_clock =
      multiprocessors_ * wgmma_rows * wgmma_k_bytes / element_bytes_ / clocks_per_column;
  const double multiply = problem.flops() / 2 / std::max(fma_per_clock, 1.0);
  const double memory = problem.bytes() * rates_.memory_us_per_byte * device.clock_ghz * 1e3;
  constexpr double other_clocks = 6000;  // launch, fill and last stores of any kernel
  const double activity = multiply / (std::max(multiply, memory) + other_clocks);
  // Clocks recorded with the times: 1980 MHz at 1024^3 and 1152^3, 1600 at 2048^3, 1470 at 4096^3.
  constexpr double unlimited_activity = 0.5;
  const double limited = std::max(activity - unlimited_activity, 0.0) / (1 - unlimited_activity);
  const double full_load_ghz = std::min(constants_.full_load_ghz, device.clock_ghz);
  return device.clock_ghz - (device.clock_ghz - full_load_ghz) * limited;
}

WarpSpecializedModel::Grid WarpSpecializedModel::lay_out(const WarpSpecializedTerms& design,
                                                         const GroupLoad* groups) const noexcept {
  Grid grid{};
  grid.rows = divide_up(rows_, design.cluster_rows);
  grid.columns = divide_up(columns_, design.cluster_columns);
  grid.tiles = std::max(groups ? groups->tiles : grid.rows * grid.columns * batches_, 1.0);
  // Whole clusters of multiprocessors.
  const auto clusters = static_cast<int>((multiprocessors_ * design.usable_share + 0.5) *
                                         design.cluster_size.inverse);
  grid.resident = std::min(grid.tiles, static_cast<double>(std::max(clusters, 1)));
  const double per_resident = 1 / grid.resident;
  grid.tiles_each = groups ? groups->busiest : divide_up(grid.tiles, {grid.resident, per_resident});
  // If groups differ in size, a block may be behind the average by more than a tile.
  grid.missing_share = std::min(grid.tiles_each - grid.tiles * per_resident, 1.0);
  grid.active = grid.resident * design.cluster_size.size;
  const double along = std::max(design.is_band_of_rows ? grid.rows : grid.columns, 1.0);
  const double across = std::max(design.is_band_of_rows ? grid.columns : grid.rows, 1.0);
  const double band = std::min(design.band.size, along);
  grid.bands = std::max(along * design.band.inverse, 1.0);
  grid.waves = std::max(across * band * per_resident, 1.0);
  grid.kept_sharers = std::min(grid.resident / band, across);
  grid.other_sharers = band;
  grid.k_blocks = std::max(divide_up(k_, design.cluster_k), 1.0);
  const double read_rows = rows_ * design.cluster_m.inverse / std::max(grid.rows, 1.0);
  const double read_columns = columns_ * design.cluster_n.inverse / std::max(grid.columns, 1.0);
  grid.read_rows = a_box_ == 1 ? read_rows : divide_up(read_rows, divisor(a_box_)) * a_box_;
  grid.read_columns =
      b_box_ == 1 ? read_columns : divide_up(read_columns, divisor(b_box_)) * b_box_;
  return grid;
}

// From requesting a stage to having it.
double WarpSpecializedModel::latency_clocks(const WarpSpecializedTerms& design) const noexcept {
  return rates_.load_clocks + (design.is_clustered ? rates_.cluster_load_clocks : 0.0);
}

// The tensor cores, or shared memory, from which each wgmma reads both operands; concurrently the
// second-level cache, and the wait for a stage that was requested as many stages ago.
double WarpSpecializedModel::time_stage(const WarpSpecializedTerms& design,
                                        const Grid& grid) const noexcept {
  const double tensor = design.k_columns * clocks_per_column * element_bytes_ / wgmma_k_bytes;
  const double shared =
      (design.k_area_sides * element_bytes_ + constants_.shared_write_share * design.stage_bytes) /
      shared_bytes_per_clock;
  // Blocks of a cluster request a share each of their common data, and wait for others that request
  // the same.
  const double of_rows = design.is_band_of_rows ? grid.kept_sharers : grid.other_sharers;
  const double of_columns = design.is_band_of_rows ? grid.other_sharers : grid.kept_sharers;
  // Tiles consist of whole lines of rows, but not of columns.
  const double b_splits =
      b_splits_ + (b_box_ == 1 ? 0.0 : constants_.split_line_share * design.tiles_amid_lines);
  const double asked =
      design.tile_k * (row_element_bytes_ * grid.read_rows * a_splits_ * design.cluster_n.inverse *
                           (1 + rates_.queue_share * of_rows) +
                       column_element_bytes_ * grid.read_columns * b_splits *
                           design.cluster_m.inverse * (1 + rates_.queue_share * of_columns));
  const double read = asked * grid.active * rates_.load_clocks_per_byte;
  // Stages in flight when a block begins are waited for once, as part of the fill.
  const double stages_each = 1 / (grid.k_blocks * grid.tiles_each);
  const double wait = latency_clocks(design) * std::max(design.stages_inverse - stages_each, 0.0);
  const double products = std::max(tensor, shared) * (1 + constants_.tall_share * design.tall);
  return beside(time_consumers(design, products), read, wait);
}

// The products of a stage with what consumers do between their wgmmas.
double WarpSpecializedModel::time_consumers(const WarpSpecializedTerms& design,
                                            double products) const noexcept {
  const double decoding = constants_.decoded_row_clocks * design.decoded_rows;
  if (design.takes_registers && !design.is_scaled)
    products += design.decoded_rows > 0 ? constants_.bare_decoding_share * decoding
                                        : constants_.register_operand_clocks;
  double clocks = products;
  if (design.promoted_sums > 0) {
    const double of_sum = constants_.promotion_clocks_per_sum +
                          constants_.scale_clocks_per_sum * design.scale_products;
    const double promotion =
        design.promotions * (constants_.promotion_clocks + of_sum * design.promoted_sums) +
        (design.is_scaled ? constants_.scaled_stage_clocks + decoding : 0);
    clocks = std::max(clocks, products * design.consumer_share + promotion);
  }
  if (design.transposed_kib > 0) {
    const double per_kib = design.splits         ? constants_.split_clocks_per_kib
                           : element_bytes_ == 1 ? constants_.byte_transposition_clocks_per_kib
                                                 : constants_.word_transposition_clocks_per_kib;
    clocks += constants_.transposition_clocks + per_kib * design.transposed_kib;
  }
  return clocks;
}

WarpSpecializedModel::TileClocks WarpSpecializedModel::time_tile(const WarpSpecializedTerms& design,
                                                                 const Grid& grid) const noexcept {
  const double tile_bytes = design.tile_m * design.stored_columns * out_element_bytes_;
  const double staging_tiles = tile_bytes * design.staging_tiles_per_byte;
  const double staging_clocks = constants_.staging_clocks + c_clocks(design);
  const double each = design.tile_m * design.stored_columns / elements_at_once;
  return {.multiply = grid.k_blocks * time_stage(design, grid) + design.addend_clocks,
          .store = staging_tiles * staging_clocks +
                   tile_bytes * out_splits_ * rates_.store_clocks_per_byte + time_exchange(design),
          .program = each * (instructions(design) * program_clocks +
                             program_.slow_results * slow_result_clocks),
          .rotation = each * (instructions(design) * rotation_program_clocks +
                              program_.slow_results * rotation_slow_clocks + rotation_store_clocks),
          .interference = each * instructions(design) * interference_clocks(design),
          .input = staging_tiles * program_.full_inputs * input_staging_clocks};
}

// From requesting a staging tile's part of C to having it.
double WarpSpecializedModel::c_clocks(const WarpSpecializedTerms& design) const noexcept {
  if (!has_c_) return 0;
  return design.prefetches_inputs && has_adjacent_c_ ? input_staging_clocks : c_staging_clocks;
}

double WarpSpecializedModel::instructions(const WarpSpecializedTerms& design) const noexcept {
  return program_.instructions - (design.adds_vector ? program_.addend_instructions : 0.0);
}

bool WarpSpecializedModel::keeps_to_gaps(const WarpSpecializedTerms& design) const noexcept {
  return design.turns > 2 &&
         (design.adds_vector ? program_.is_dense_without_addend : program_.is_dense);
}

// Clocks per instruction, like the next function.
double WarpSpecializedModel::interference_clocks(
    const WarpSpecializedTerms& design) const noexcept {
  return keeps_to_gaps(design) ? dense_interference_clocks : program_interference_clocks;
}

double WarpSpecializedModel::tile_clocks_of_program(
    const WarpSpecializedTerms& design) const noexcept {
  if (design.turns <= 2) return program_tile_clocks;
  return keeps_to_gaps(design) ? 0.0 : program_burst_clocks;
}

// From one tile of a multiprocessor to the next: the next tiles are multiplied while one is stored,
// unless storing takes longer.
double WarpSpecializedModel::time_period(const WarpSpecializedTerms& design,
                                         const TileClocks& tile) const noexcept {
  const double hindered = constants_.store_interference * tile.store + tile.interference;
  if (design.turns > 2)
    return std::max(tile.multiply + hindered,
                    (tile.multiply + tile.rotation) * design.turns_inverse);
  const double each = (tile.multiply + tile.store + tile.program) * design.turns_inverse;
  return std::max(tile.multiply, each) + hindered;
}

// Rows beyond the problem are not exchanged.
double WarpSpecializedModel::time_exchange(const WarpSpecializedTerms& design) const noexcept {
  if (design.sums_from_others == 0) return 0;
  const double bytes = std::min(design.tile_m, rows_) * design.sums_from_others * sum_bytes;
  return constants_.exchange_clocks * design.other_blocks +
         bytes / constants_.exchange_bytes_per_clock;
}

// Tiles are walked in bands: all waves of a band use its panel of one operand, and every band reads
// the other operand. Stores meanwhile occupy the cache, too.
double WarpSpecializedModel::memory_bytes(const WarpSpecializedTerms& design,
                                          const Grid& grid) const noexcept {
  const double kept_bytes = (design.is_band_of_rows ? a_bytes_ : b_bytes_);
  const double other_bytes = (design.is_band_of_rows ? b_bytes_ : a_bytes_);
  const double per_band = 1 / grid.bands;
  const double band_bytes = (kept_bytes + out_bytes_) * per_band + other_bytes;
  const double wave_bytes =
      kept_bytes * per_band + (other_bytes + out_bytes_ * per_band) / grid.waves;
  // The factor of an operand's bytes: part of it is read again if several clusters request it at
  // once.
  const auto again = [&](double sharers) {
    return constants_.sharer_share * std::clamp(sharers - 1, 0.0, 1.0);
  };
  return kept_bytes *
             (reads(grid.waves, wave_bytes * rates_.per_l2_byte) + again(grid.kept_sharers)) +
         other_bytes *
             (reads(grid.bands, band_bytes * rates_.per_l2_byte) + again(grid.other_sharers)) +
         out_bytes_ * out_splits_ * constants_.write_weight;
}

WarpSpecializedParts WarpSpecializedModel::predict(const WarpSpecializedTerms& design,
                                                   const GroupLoad* groups) const noexcept {
  const Grid grid = lay_out(design, groups);
  const TileClocks tile = time_tile(design, grid);
  // With groups in turn the epilogue's inputs are read beforehand.
  const bool overlaps = design.turns > 1 && grid.tiles_each > 1;
  const double finish = tile.store + tile.program;
  const double period = overlaps ? time_period(design, tile) : tile.multiply + finish + tile.input;
  const double begin = instructions(design) * tile_clocks_of_program(design);
  const double tiles = grid.tiles_each - constants_.short_wave_gain * grid.missing_share;
  const double clocks = tiles * (period + begin) + (overlaps ? finish : 0.0);
  const double fill = constants_.fill_clocks + latency_clocks(design) +
                      (design.is_clustered ? constants_.cluster_clocks : 0.0);
  return {.fill_us = fill * rates_.us_per_clock,
          .compute_us = clocks * rates_.us_per_clock,
          .memory_us = memory_bytes(design, grid) * rates_.memory_us_per_byte};
}

}  // namespace gemmery::model
