// SPDX-License-Identifier: Apache-2.0
// Blocking for caches and threads.
#include "providers/host/blocked.hpp"

#include <algorithm>
#include <vector>

#include "core/arithmetic.hpp"
#include "platform/parallel.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host {
namespace {

// A depth block of B's panel (32 floats or 16 doubles wide) fills 32 KiB of first-level cache. It
// also keeps accumulators of int8 products exact in float: 256 · 255² < 2^24.
constexpr std::int64_t depth_block = 256;
static_assert(depth_block * 255 * 255 < (1 << 24));

// A task's accumulators and its share of A stay in a second-level cache of 1 MiB: 192 · (512 + 256)
// floats are 590 KiB.
constexpr std::int64_t most_task_rows = 192;
constexpr std::int64_t most_task_columns = 512;

// The packed part of each operand takes at most this many bytes.
constexpr std::int64_t most_packed_bytes = std::int64_t{64} << 20;

// The most of k in a panel. A longer product takes several passes over one chunk, whose
// accumulators stay in memory in between: 2048 · 2048 floats or 1024 · 1024 doubles, 16 MiB.
constexpr std::int64_t most_packed_depth = 8192;
static_assert(most_packed_depth % depth_block == 0, "the order of additions is that of one pass");

// Splits `extent` into equal parts of at most `most`, in units of a tile's side.
std::int64_t part_of(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  const std::int64_t parts = std::max<std::int64_t>(1, divide_up(extent, most));
  return round_up(divide_up(extent, parts), unit);
}

// The number of lanes of an operand that are packed at a time: all of them, or as many as
// most_packed_bytes holds.
template <class T>
std::int64_t packed_lanes(const PanelSource& source, int width) {
  const std::int64_t depth = std::clamp<std::int64_t>(source.depth, 1, most_packed_depth);
  const std::int64_t fitting = most_packed_bytes / (depth * static_cast<std::int64_t>(sizeof(T)));
  return std::min(std::max<std::int64_t>(width, fitting / width * width),
                  round_up(source.lanes, width));
}

// The part of an operand that is packed for one pass over k.
PanelSource part_of_depth(const PanelSource& source, std::int64_t first, std::int64_t depth) {
  PanelSource part = source;
  part.depth = depth;
  part.first_depth += first;
  if (part.window) return part;
  part.data = static_cast<const char*>(source.data) +
              storage_bytes(source.dtype, first * source.depth_stride);
  return part;
}

template <class T>
void pack_in_parallel(const PanelSource& source, LaneRange range, int width, PackedValue packed,
                      int threads, T* panels) {
  const std::int64_t elements_per_panel = source.depth * width;
  const std::int64_t grain =
      std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, elements_per_panel));
  const auto pack_some = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * width;
    const LaneRange part{range.first + first, std::min(end * width, range.count) - first};
    pack_panels(source, part, width, packed, panels + begin * elements_per_panel);
  };
  platform::parallel_for(divide_up(range.count, width), grain, pack_some, threads);
}

// A thread's accumulators, valid until its next call for the same type.
template <class Value>
Value* zeroed_accumulators(std::int64_t count) {
  static thread_local Scratch scratch;
  auto* const accumulators = scratch.reserve<Value>(count, "out", "accumulators");
  std::fill_n(accumulators, count, Value{0});
  return accumulators;
}

// The chunk of the product whose operands are packed now, for `depth` of k.
template <class T>
struct PackedChunk {
  LaneRange rows;
  LaneRange columns;
  std::int64_t depth;
  const T* a;
  const T* b;
};

// A rectangle of a chunk; offsets are within the chunk and at tile boundaries.
struct Task {
  std::int64_t row, rows;
  std::int64_t column, columns;
};

// Divides a chunk into tasks.
class TaskGrid {
 public:
  template <class T>
  TaskGrid(const PackedChunk<T>& chunk, const TileKernel<T>& kernel)
      : all_rows_(chunk.rows.count),
        all_columns_(chunk.columns.count),
        rows_(part_of(all_rows_, most_task_rows, kernel.rows)),
        columns_(part_of(all_columns_, most_task_columns, kernel.columns)),
        row_tasks_(divide_up(all_rows_, rows_)) {}

  std::int64_t count() const { return row_tasks_ * divide_up(all_columns_, columns_); }

  // No task is larger than the first.
  Task operator[](std::int64_t index) const {
    const std::int64_t row = index % row_tasks_ * rows_;
    const std::int64_t column = index / row_tasks_ * columns_;
    return {row, std::min(rows_, all_rows_ - row), column,
            std::min(columns_, all_columns_ - column)};
  }

 private:
  std::int64_t all_rows_, all_columns_;
  std::int64_t rows_, columns_;
  std::int64_t row_tasks_;
};

template <class T>
class TaskRunner {
 public:
  TaskRunner(const BlockedProduct<T>& product, const PackedChunk<T>& chunk, const Task& task)
      : kernel_(product.kernel),
        chunk_(chunk),
        task_(task),
        tile_rows_(divide_up(task.rows, kernel_.rows)),
        tile_columns_(divide_up(task.columns, kernel_.columns)),
        plane_(kernel_.rows * kernel_.columns),
        tile_size_(product.is_compensated ? 2 * plane_ : plane_) {}

  std::int64_t accumulator_count() const { return tile_rows_ * tile_columns_ * tile_size_; }

  // Adds the products over all of the chunk's k.
  void accumulate(T* accumulators) const {
    for (std::int64_t first = 0; first < chunk_.depth; first += depth_block)
      accumulate_block(first, accumulators);
  }

  // The same for products of 8-bit integers: floats hold a depth block's sums exactly, `totals` the
  // whole sums modulo 2^32.
  void accumulate(std::uint32_t* totals) const {
    const std::int64_t count = accumulator_count();
    for (std::int64_t first = 0; first < chunk_.depth; first += depth_block) {
      T* accumulators = zeroed_accumulators<T>(count);
      accumulate_block(first, accumulators);
      for (std::int64_t i = 0; i < count; ++i)
        totals[i] += static_cast<std::uint32_t>(static_cast<std::int32_t>(accumulators[i]));
    }
  }

  template <class Sum>
  void finish_tiles(const Sum* sums, TileFinish<Sum> finish) const {
    for (std::int64_t j = 0; j < tile_columns_; ++j)
      for (std::int64_t i = 0; i < tile_rows_; ++i)
        finish.call(finish.context, tile_at(i, j, sums + (j * tile_rows_ + i) * tile_size_));
  }

 private:
  // One depth block of every tile.
  void accumulate_block(std::int64_t first, T* accumulators) const {
    const std::int64_t depth = std::min(depth_block, chunk_.depth - first);
    const T* a = chunk_.a + task_.row * chunk_.depth + first * kernel_.rows;
    const T* b = chunk_.b + task_.column * chunk_.depth + first * kernel_.columns;
    for (std::int64_t j = 0; j < tile_columns_; ++j)
      for (std::int64_t i = 0; i < tile_rows_; ++i)
        kernel_.accumulate(depth, a + i * kernel_.rows * chunk_.depth,
                           b + j * kernel_.columns * chunk_.depth,
                           accumulators + (j * tile_rows_ + i) * tile_size_);
  }

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
  const PackedChunk<T>& chunk_;
  const Task& task_;
  std::int64_t tile_rows_;
  std::int64_t tile_columns_;
  int plane_;
  int tile_size_;
};

// Multiplies chunk after chunk. Accumulators are of type Value: T, or uint32 if T is float and the
// operands are 8-bit integers; `finish` takes them as Sum.
template <class T, class Value, class Sum>
class ChunkedProduct {
 public:
  ChunkedProduct(const BlockedProduct<T>& product, TileFinish<Sum> finish)
      : product_(product),
        finish_(finish),
        chunk_rows_(packed_lanes<T>(product.a, product.kernel.rows)),
        chunk_columns_(packed_lanes<T>(product.b, product.kernel.columns)) {
    static thread_local Scratch a_scratch;
    static thread_local Scratch b_scratch;
    const std::int64_t depth = std::min(product.a.depth, most_packed_depth);
    a_ = a_scratch.reserve<T>(chunk_rows_ * depth, "A", "packed panels of A");
    b_ = b_scratch.reserve<T>(chunk_columns_ * depth, "B", "packed panels of B");
  }

  void run() {
    const bool fits_one_pass = product_.a.depth <= most_packed_depth;
    for (std::int64_t column = 0; column < product_.b.lanes; column += chunk_columns_) {
      const LaneRange columns{column, std::min(chunk_columns_, product_.b.lanes - column)};
      if (fits_one_pass) pack_b(product_.b, columns);
      for (std::int64_t row = 0; row < product_.a.lanes; row += chunk_rows_) {
        const LaneRange rows{row, std::min(chunk_rows_, product_.a.lanes - row)};
        fits_one_pass ? multiply_at_once(rows, columns) : multiply_in_passes(rows, columns);
      }
    }
  }

 private:
  using Chunk = PackedChunk<T>;

  void pack_a(const PanelSource& source, LaneRange rows) {
    pack_in_parallel(source, rows, product_.kernel.rows, product_.packed_a, product_.threads, a_);
  }
  void pack_b(const PanelSource& source, LaneRange columns) {
    pack_in_parallel(source, columns, product_.kernel.columns, product_.packed_b, product_.threads,
                     b_);
  }

  // B is packed already.
  void multiply_at_once(LaneRange rows, LaneRange columns) {
    pack_a(product_.a, rows);
    const Chunk chunk{rows, columns, product_.a.depth, a_, b_};
    const TaskGrid tasks(chunk, product_.kernel);
    run_tasks(tasks, [&](std::int64_t, const Task& task) {
      const TaskRunner<T> runner(product_, chunk, task);
      Value* accumulators = zeroed_accumulators<Value>(runner.accumulator_count());
      runner.accumulate(accumulators);
      finish(runner, accumulators);
    });
  }

  // The accumulators of all tasks stay in memory between passes over parts of k.
  void multiply_in_passes(LaneRange rows, LaneRange columns) {
    static thread_local Scratch scratch;
    Chunk chunk{rows, columns, 0, a_, b_};
    const TaskGrid tasks(chunk, product_.kernel);
    const std::int64_t stride = TaskRunner<T>(product_, chunk, tasks[0]).accumulator_count();
    const std::int64_t count = tasks.count() * stride;
    auto* const accumulators = scratch.reserve<Value>(count, "out", "accumulators");
    std::fill_n(accumulators, count, Value{0});
    for (std::int64_t first = 0; first < product_.a.depth; first += most_packed_depth) {
      chunk.depth = std::min(most_packed_depth, product_.a.depth - first);
      pack_a(part_of_depth(product_.a, first, chunk.depth), rows);
      pack_b(part_of_depth(product_.b, first, chunk.depth), columns);
      run_tasks(tasks, [&](std::int64_t index, const Task& task) {
        TaskRunner<T>(product_, chunk, task).accumulate(accumulators + index * stride);
      });
    }
    run_tasks(tasks, [&](std::int64_t index, const Task& task) {
      finish(TaskRunner<T>(product_, chunk, task), accumulators + index * stride);
    });
  }

  template <class RunTask>
  void run_tasks(const TaskGrid& tasks, const RunTask& run_task) const {
    const auto run_some = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) run_task(index, tasks[index]);
    };
    platform::parallel_for(tasks.count(), 1, run_some, product_.threads);
  }

  void finish(const TaskRunner<T>& runner, const Value* accumulators) const {
    runner.finish_tiles(reinterpret_cast<const Sum*>(accumulators), finish_);
  }

  const BlockedProduct<T>& product_;
  TileFinish<Sum> finish_;
  std::int64_t chunk_rows_;
  std::int64_t chunk_columns_;
  T* a_;
  T* b_;
};

}  // namespace

void multiply_blocked(const BlockedProduct<float>& product, TileFinish<float> finish) {
  ChunkedProduct<float, float, float>(product, finish).run();
}
void multiply_blocked(const BlockedProduct<double>& product, TileFinish<double> finish) {
  ChunkedProduct<double, double, double>(product, finish).run();
}

void multiply_blocked_integers(const BlockedProduct<float>& product,
                               TileFinish<std::int32_t> finish) {
  ChunkedProduct<float, std::uint32_t, std::int32_t>(product, finish).run();
}

}  // namespace gemmery::host
