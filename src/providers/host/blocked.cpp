// SPDX-License-Identifier: Apache-2.0
// Blocking for caches and threads.
#include "providers/host/blocked.hpp"

#include <algorithm>
#include <vector>

#include "platform/parallel.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host {
namespace {

// A depth block of B's panel (32 floats or 16 doubles wide) fills 32 KiB of first-level cache. It
// also keeps sums of int8 products exact in float: 256 · 255² < 2^24.
constexpr std::int64_t depth_block = 256;
static_assert(depth_block * 255 * 255 < (1 << 24));

// A task's sums and its share of A stay in a second-level cache of 1 MiB: 192 · (512 + 256) floats
// are 590 KiB.
constexpr std::int64_t most_task_rows = 192;
constexpr std::int64_t most_task_columns = 512;

// Packed operands take at most this many bytes each, except that one panel is always packed whole.
constexpr std::int64_t most_packed_bytes = std::int64_t{64} << 20;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit;
}

// Splits `extent` into equal parts of at most `most`, in units of a tile's side.
std::int64_t part_of(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  const std::int64_t parts = std::max<std::int64_t>(1, divide_up(extent, most));
  return round_up(divide_up(extent, parts), unit);
}

template <class T>
std::int64_t packed_lanes(const PanelSource& source, int width) {
  const auto lane_bytes =
      static_cast<std::int64_t>(sizeof(T)) * std::max<std::int64_t>(1, source.depth);
  return std::max<std::int64_t>(width, most_packed_bytes / lane_bytes / width * width);
}

template <class T>
void pack_in_parallel(const PanelSource& source, LaneRange range, int width,
                      const BlockedProduct<T>& product, T* panels) {
  const std::int64_t elements_per_panel = source.depth * width;
  const std::int64_t grain =
      std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, elements_per_panel));
  const auto pack_some = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * width;
    const LaneRange part{range.first + first, std::min(end * width, range.count) - first};
    pack_panels(source, part, width, product.packed, panels + begin * elements_per_panel);
  };
  platform::parallel_for(divide_up(range.count, width), grain, pack_some, product.threads);
}

// The chunk of the product whose operands are packed at this moment.
template <class T>
struct PackedChunk {
  LaneRange rows;
  LaneRange columns;
  const T* a;
  const T* b;
};

// A rectangle of a chunk; offsets are within the chunk and at tile boundaries.
struct Task {
  std::int64_t row, rows;
  std::int64_t column, columns;
};

template <class T>
class TaskRunner {
 public:
  TaskRunner(const BlockedProduct<T>& product, const PackedChunk<T>& chunk, const Task& task)
      : kernel_(product.kernel),
        depth_(product.a.depth),
        chunk_(chunk),
        task_(task),
        tile_rows_(divide_up(task.rows, kernel_.rows)),
        tile_columns_(divide_up(task.columns, kernel_.columns)),
        plane_(kernel_.rows * kernel_.columns),
        tile_size_(product.is_compensated ? 2 * plane_ : plane_) {}

  std::int64_t sum_count() const { return tile_rows_ * tile_columns_ * tile_size_; }

  void accumulate(std::int64_t first_depth, std::int64_t depth, T* sums) const {
    const T* a = chunk_.a + task_.row * depth_ + first_depth * kernel_.rows;
    const T* b = chunk_.b + task_.column * depth_ + first_depth * kernel_.columns;
    for (std::int64_t j = 0; j < tile_columns_; ++j)
      for (std::int64_t i = 0; i < tile_rows_; ++i)
        kernel_.accumulate(depth, a + i * kernel_.rows * depth_, b + j * kernel_.columns * depth_,
                           sums + (j * tile_rows_ + i) * tile_size_);
  }

  void accumulate_all(T* sums) const {
    for (std::int64_t first = 0; first < depth_; first += depth_block)
      accumulate(first, std::min(depth_block, depth_ - first), sums);
  }

  template <class Sum>
  void finish_tiles(const Sum* sums, TileFinish<Sum> finish) const {
    for (std::int64_t j = 0; j < tile_columns_; ++j)
      for (std::int64_t i = 0; i < tile_rows_; ++i)
        finish.call(finish.context, tile_at(i, j, sums + (j * tile_rows_ + i) * tile_size_));
  }

 private:
  template <class Sum>
  FinishedTile<Sum> tile_at(std::int64_t i, std::int64_t j, const Sum* sums) const {
    const std::int64_t row = i * kernel_.rows;
    const std::int64_t column = j * kernel_.columns;
    return {.row = chunk_.rows.first + task_.row + row,
            .column = chunk_.columns.first + task_.column + column,
            .rows = static_cast<int>(std::min<std::int64_t>(kernel_.rows, task_.rows - row)),
            .columns =
                static_cast<int>(std::min<std::int64_t>(kernel_.columns, task_.columns - column)),
            .sums = sums,
            .row_stride = kernel_.columns,
            .plane_stride = plane_};
  }

  const TileKernel<T>& kernel_;
  std::int64_t depth_;
  const PackedChunk<T>& chunk_;
  const Task& task_;
  std::int64_t tile_rows_;
  std::int64_t tile_columns_;
  int plane_;
  int tile_size_;
};

template <class T, class RunTask>
void run_tasks(const BlockedProduct<T>& product, const PackedChunk<T>& chunk,
               const RunTask& run_task) {
  const std::int64_t rows = part_of(chunk.rows.count, most_task_rows, product.kernel.rows);
  const std::int64_t columns =
      part_of(chunk.columns.count, most_task_columns, product.kernel.columns);
  const std::int64_t row_tasks = divide_up(chunk.rows.count, rows);
  const std::int64_t task_count = row_tasks * divide_up(chunk.columns.count, columns);
  const auto run_some = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t row = index % row_tasks * rows;
      const std::int64_t column = index / row_tasks * columns;
      run_task(Task{row, std::min(rows, chunk.rows.count - row), column,
                    std::min(columns, chunk.columns.count - column)});
    }
  };
  platform::parallel_for(task_count, 1, run_some, product.threads);
}

// Packs chunk after chunk and calls `run_task(chunk, task)` for the tasks of each.
template <class T, class RunTask>
void run_chunks(const BlockedProduct<T>& product, const RunTask& run_task) {
  static thread_local Scratch a_scratch;
  static thread_local Scratch b_scratch;
  const std::int64_t depth = product.a.depth;
  const std::int64_t chunk_rows = std::min(packed_lanes<T>(product.a, product.kernel.rows),
                                           round_up(product.a.lanes, product.kernel.rows));
  const std::int64_t chunk_columns = std::min(packed_lanes<T>(product.b, product.kernel.columns),
                                              round_up(product.b.lanes, product.kernel.columns));
  T* a = a_scratch.reserve<T>(static_cast<std::size_t>(chunk_rows * depth));
  T* b = b_scratch.reserve<T>(static_cast<std::size_t>(chunk_columns * depth));
  for (std::int64_t column = 0; column < product.b.lanes; column += chunk_columns) {
    const LaneRange columns{column, std::min(chunk_columns, product.b.lanes - column)};
    pack_in_parallel(product.b, columns, product.kernel.columns, product, b);
    for (std::int64_t row = 0; row < product.a.lanes; row += chunk_rows) {
      const LaneRange rows{row, std::min(chunk_rows, product.a.lanes - row)};
      pack_in_parallel(product.a, rows, product.kernel.rows, product, a);
      const PackedChunk<T> chunk{rows, columns, a, b};
      run_tasks(product, chunk, [&](const Task& task) { run_task(chunk, task); });
    }
  }
}

template <class T>
T* zeroed_sums(std::int64_t count) {
  static thread_local Scratch scratch;
  T* sums = scratch.reserve<T>(static_cast<std::size_t>(count));
  std::fill_n(sums, count, T{0});
  return sums;
}

template <class T>
void multiply(const BlockedProduct<T>& product, TileFinish<T> finish) {
  run_chunks(product, [&](const PackedChunk<T>& chunk, const Task& task) {
    const TaskRunner<T> runner(product, chunk, task);
    T* sums = zeroed_sums<T>(runner.sum_count());
    runner.accumulate_all(sums);
    runner.finish_tiles(sums, finish);
  });
}

}  // namespace

void multiply_blocked(const BlockedProduct<float>& product, TileFinish<float> finish) {
  multiply(product, finish);
}
void multiply_blocked(const BlockedProduct<double>& product, TileFinish<double> finish) {
  multiply(product, finish);
}

void multiply_blocked_integers(const BlockedProduct<float>& product,
                               TileFinish<std::int32_t> finish) {
  run_chunks(product, [&](const PackedChunk<float>& chunk, const Task& task) {
    const TaskRunner<float> runner(product, chunk, task);
    const std::int64_t count = runner.sum_count();
    auto* totals = zeroed_sums<std::uint32_t>(count);
    const std::int64_t depth = product.a.depth;
    for (std::int64_t first = 0; first < depth; first += depth_block) {
      float* sums = zeroed_sums<float>(count);
      runner.accumulate(first, std::min(depth_block, depth - first), sums);
      for (std::int64_t s = 0; s < count; ++s)
        totals[s] += static_cast<std::uint32_t>(static_cast<std::int32_t>(sums[s]));
    }
    runner.finish_tiles(reinterpret_cast<const std::int32_t*>(totals), finish);
  });
}

}  // namespace gemmery::host
