// SPDX-License-Identifier: Apache-2.0
#include "tests/providers/cublaslt/fake_cublaslt.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include <gemmery/dtype.hpp>

#include "core/number.hpp"

namespace gemmery::cublaslt {

struct HandleObject {};
struct MatmulObject {
  ComputeType compute;
  DataType scale;
  bool transposes[2] = {};
  std::uint32_t epilogue = 1;
  const void* bias = nullptr;
  std::int64_t bias_stride = 0;
  int bias_type = -1;
  bool is_fast = false;
  const void* scales[2] = {};
  std::int32_t scale_modes[2] = {};
};
struct LayoutObject {
  DataType type;
  std::int64_t rows, columns, leading;
  std::int32_t batches = 1;
  std::int64_t stride = 0;
};
struct PreferenceObject {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = 7;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace {

tests::FakeCublasLt& fake() {
  static auto* const state = new tests::FakeCublasLt;
  return *state;
}
std::mutex& fake_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
using Lock = std::lock_guard<std::mutex>;

// Counts a call; its planned failure, if there is one.
Result enter(const char* function) {
  const Lock lock(fake_mutex());
  ++fake().calls[function];
  const auto planned = fake().failures.find(function);
  if (planned == fake().failures.end()) return Result::success;
  const Result result = planned->second;
  fake().failures.erase(planned);
  return result;
}
#define ENTER() \
  if (const Result planned = enter(__func__); planned != Result::success) return planned

void count_object(int change) {
  const Lock lock(fake_mutex());
  fake().live_objects += change;
}

template <class Value>
Result take(Value& field, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes != sizeof field) return Result::invalid_value;
  std::memcpy(&field, from, bytes);
  return Result::success;
}

// --- elements -----------------------------------------------------------------------------------

DType dtype_of(DataType type) {
  switch (type) {
    case DataType::f64:
      return DType::float64;
    case DataType::f32:
      return DType::float32;
    case DataType::f16:
      return DType::float16;
    case DataType::bf16:
      return DType::bfloat16;
    case DataType::e4m3:
      return DType::float8_e4m3fn;
    case DataType::e5m2:
      return DType::float8_e5m2;
    case DataType::i8:
      return DType::int8;
    case DataType::i32:
      return DType::int32;
  }
  return DType::float32;
}

template <class Value>
Value load(const void* memory, std::int64_t index) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(memory) + index * std::int64_t{sizeof value},
              sizeof value);
  return value;
}
template <class Value>
void store(void* memory, std::int64_t index, Value value) {
  std::memcpy(static_cast<char*>(memory) + index * std::int64_t{sizeof value}, &value,
              sizeof value);
}

double read(DataType type, const void* memory, std::int64_t index) {
  const DType dtype = dtype_of(type);
  if (dtype == DType::float64) return load<double>(memory, index);
  if (dtype == DType::float32) return load<float>(memory, index);
  if (dtype == DType::int8) return load<std::int8_t>(memory, index);
  if (dtype == DType::int32) return load<std::int32_t>(memory, index);
  const auto format = number::float_format(dtype);
  return byte_width(dtype) == 1 ? number::decode(format, load<std::uint8_t>(memory, index))
                                : number::decode(format, load<std::uint16_t>(memory, index));
}

void write(DataType type, void* memory, std::int64_t index, double value) {
  const DType dtype = dtype_of(type);
  if (dtype == DType::float64) return store(memory, index, value);
  if (dtype == DType::float32) return store(memory, index, static_cast<float>(value));
  if (dtype == DType::int32) return store(memory, index, static_cast<std::int32_t>(value));
  const auto format = number::float_format(dtype);
  store(memory, index, static_cast<std::uint16_t>(number::encode(format, value)));
}

// --- algorithms ---------------------------------------------------------------------------------

// The words of an algorithm: its identifiers, flags, and whether the heuristics made it.
constexpr std::uint64_t from_heuristics = 0x5eed;
struct Words {
  std::int32_t id = -1;
  std::uint32_t tile = 0, stages = 0;
  std::int32_t splits = 1;
  std::uint32_t reduction = 0, swizzle = 0, option = 0;
  std::uint16_t inner = 0, cluster = 0;
  std::uint32_t alignments = 0;  // the least of the operands
  std::uint32_t uses_tensor_cores = 0;
  std::uint32_t has_shapes = 1;
  std::uint64_t origin = 0;
  std::uint64_t more = 0;
};
static_assert(sizeof(Words) == sizeof(AlgorithmData));

Words words_of(const AlgorithmData& data) {
  Words words;
  std::memcpy(&words, &data, sizeof words);
  return words;
}
void set_words(AlgorithmData& data, const Words& words) { std::memcpy(&data, &words, sizeof data); }

bool is_shape(ConfigAttribute attribute) {
  return attribute == ConfigAttribute::inner_shape || attribute == ConfigAttribute::cluster_shape;
}

HeuristicResult result_of(const tests::FakeAlgorithm& planned, const PreferenceObject& preference) {
  Words words;
  words.id = planned.id;
  words.tile = planned.tile;
  words.stages = planned.stages;
  words.splits = planned.splits;
  words.reduction = planned.reduction;
  words.option = planned.option;
  words.uses_tensor_cores = planned.uses_tensor_cores ? 1 : 0;
  words.has_shapes = planned.has_shapes ? 1 : 0;
  words.alignments = *std::ranges::min_element(preference.alignments);
  words.origin = from_heuristics;
  HeuristicResult result;
  set_words(result.algorithm, words);
  result.workspace_bytes = planned.workspace_bytes;
  result.state = planned.state;
  result.waves = planned.waves;
  return result;
}

// Two operands of e5m2, and matrices that do not fit, have no algorithm.
bool is_supported(const MatmulObject& operation, const LayoutObject& a, const LayoutObject& b,
                  const LayoutObject& c, const LayoutObject& d) {
  const auto extents = [](const LayoutObject& matrix, bool transposes) {
    return transposes ? std::pair(matrix.columns, matrix.rows)
                      : std::pair(matrix.rows, matrix.columns);
  };
  const auto [m, k] = extents(a, operation.transposes[0]);
  const auto [also_k, n] = extents(b, operation.transposes[1]);
  const bool fits = k == also_k && m == d.rows && n == d.columns && c.rows == m && c.columns == n;
  const bool are_batches =
      a.batches == d.batches && b.batches == d.batches && c.batches == d.batches;
  return fits && are_batches && !(a.type == DataType::e5m2 && b.type == DataType::e5m2);
}

// --- the product --------------------------------------------------------------------------------

struct Call {
  const MatmulObject& operation;
  const LayoutObject& a;
  const LayoutObject& b;
  const LayoutObject& c;
  const LayoutObject& d;
  const void *a_data, *b_data, *c_data;
  void* d_data;
  double alpha, beta;

  double factor(const LayoutObject& matrix, const void* data, bool transposes, std::int64_t l,
                std::int64_t row, std::int64_t column) const {
    const std::int64_t place =
        transposes ? row * matrix.leading + column : column * matrix.leading + row;
    return read(matrix.type, data, l * matrix.stride + place);
  }

  double sum(std::int64_t l, std::int64_t i, std::int64_t j) const {
    const bool turns_a = operation.transposes[0];
    const std::int64_t k = turns_a ? a.rows : a.columns;
    double total = 0;
    for (std::int64_t t = 0; t < k; ++t)
      total +=
          factor(a, a_data, turns_a, l, i, t) * factor(b, b_data, operation.transposes[1], l, t, j);
    return total;
  }

  bool has(Epilogue epilogue) const {
    return (operation.epilogue & static_cast<std::uint32_t>(epilogue)) != 0;
  }

  double finish(std::int64_t l, std::int64_t i, std::int64_t j, double x) const {
    if (has(Epilogue::bias)) {
      const auto type =
          operation.bias_type < 0 ? d.type : static_cast<DataType>(operation.bias_type);
      x += read(type, operation.bias, l * operation.bias_stride + i);
    }
    if (has(Epilogue::relu)) x = x < 0 ? 0 : x;
    return x;
  }

  double scale(int operand, std::int64_t place) const {
    const void* const values = operation.scales[operand];
    if (values == nullptr) return 1;
    return load<float>(values, operation.scale_modes[operand] == 0 ? 0 : place);
  }

  void run() const {
    for (std::int64_t l = 0; l < d.batches; ++l)
      for (std::int64_t j = 0; j < d.columns; ++j)
        for (std::int64_t i = 0; i < d.rows; ++i) {
          double x = alpha * scale(0, i) * scale(1, j) * sum(l, i, j);
          if (beta != 0) x += beta * read(c.type, c_data, l * c.stride + j * c.leading + i);
          write(d.type, d_data, l * d.stride + j * d.leading + i, finish(l, i, j, x));
        }
  }
};

bool is_aligned(const void* data, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % std::max(bytes, 1u) == 0;
}

}  // namespace

extern "C" {

#define EXPORTED __attribute__((visibility("default")))

EXPORTED tests::FakeCublasLt* fake_cublaslt() { return &fake(); }

EXPORTED std::size_t cublasLtGetVersion() { return fake().version; }
EXPORTED const char* cublasLtGetStatusString(Result) { return "as the test asked"; }

EXPORTED Result cublasLtCreate(Handle* handle) {
  ENTER();
  if (fake().on_call) fake().on_call();
  *handle = new HandleObject;
  return Result::success;
}

EXPORTED Result cublasLtMatmulDescCreate(MatmulDescriptor* descriptor, ComputeType compute,
                                         DataType scale) {
  ENTER();
  *descriptor = new MatmulObject{.compute = compute, .scale = scale};
  count_object(1);
  return Result::success;
}
EXPORTED Result cublasLtMatmulDescDestroy(MatmulDescriptor descriptor) {
  delete descriptor;
  count_object(-1);
  return Result::success;
}
EXPORTED Result cublasLtMatmulDescSetAttribute(MatmulDescriptor descriptor,
                                               DescriptorAttribute attribute, const void* from,
                                               std::size_t bytes) {
  ENTER();
  MatmulObject& object = *descriptor;
  std::int32_t whole = 0;
  std::int8_t flag = 0;
  switch (attribute) {
    case DescriptorAttribute::transpose_a:
    case DescriptorAttribute::transpose_b: {
      const Result result = take(whole, from, bytes);
      object.transposes[attribute == DescriptorAttribute::transpose_a ? 0 : 1] = whole == 1;
      return result;
    }
    case DescriptorAttribute::epilogue:
      return take(object.epilogue, from, bytes);
    case DescriptorAttribute::bias_pointer:
      return take(object.bias, from, bytes);
    case DescriptorAttribute::bias_batch_stride:
      return take(object.bias_stride, from, bytes);
    case DescriptorAttribute::fast_accumulation: {
      const Result result = take(flag, from, bytes);
      object.is_fast = flag != 0;
      return result;
    }
    case DescriptorAttribute::bias_type:
      return take(object.bias_type, from, bytes);
    case DescriptorAttribute::a_scale_pointer:
      return take(object.scales[0], from, bytes);
    case DescriptorAttribute::b_scale_pointer:
      return take(object.scales[1], from, bytes);
    case DescriptorAttribute::a_scale_mode:
      return take(object.scale_modes[0], from, bytes);
    case DescriptorAttribute::b_scale_mode:
      return take(object.scale_modes[1], from, bytes);
  }
  return Result::invalid_value;
}

EXPORTED Result cublasLtMatrixLayoutCreate(MatrixLayout* layout, DataType type, std::uint64_t rows,
                                           std::uint64_t columns, std::int64_t leading) {
  ENTER();
  const auto signed_rows = static_cast<std::int64_t>(rows);
  if (leading < signed_rows) return Result::invalid_value;
  *layout = new LayoutObject{type, signed_rows, static_cast<std::int64_t>(columns), leading};
  count_object(1);
  return Result::success;
}
EXPORTED Result cublasLtMatrixLayoutDestroy(MatrixLayout layout) {
  delete layout;
  count_object(-1);
  return Result::success;
}
EXPORTED Result cublasLtMatrixLayoutSetAttribute(MatrixLayout layout, LayoutAttribute attribute,
                                                 const void* from, std::size_t bytes) {
  ENTER();
  return attribute == LayoutAttribute::batch_count ? take(layout->batches, from, bytes)
                                                   : take(layout->stride, from, bytes);
}

EXPORTED Result cublasLtMatmulPreferenceCreate(MatmulPreference* preference) {
  ENTER();
  *preference = new PreferenceObject;
  count_object(1);
  return Result::success;
}
EXPORTED Result cublasLtMatmulPreferenceDestroy(MatmulPreference preference) {
  delete preference;
  count_object(-1);
  return Result::success;
}
EXPORTED Result cublasLtMatmulPreferenceSetAttribute(MatmulPreference preference,
                                                     PreferenceAttribute attribute,
                                                     const void* from, std::size_t bytes) {
  ENTER();
  if (attribute == PreferenceAttribute::most_workspace_bytes)
    return take(preference->workspace, from, bytes);
  if (attribute == PreferenceAttribute::reduction_schemes)
    return take(preference->reductions, from, bytes);
  const int operand =
      static_cast<int>(attribute) - static_cast<int>(PreferenceAttribute::alignment_a);
  return take(preference->alignments[operand], from, bytes);
}

EXPORTED Result cublasLtMatmulAlgoGetHeuristic(Handle, MatmulDescriptor operation, MatrixLayout a,
                                               MatrixLayout b, MatrixLayout c, MatrixLayout d,
                                               MatmulPreference preference, int asked,
                                               HeuristicResult* results, int* count) {
  ENTER();
  if (fake().on_call) fake().on_call();
  *count = 0;
  if (!is_supported(*operation, *a, *b, *c, *d)) return Result::not_supported;
  for (const tests::FakeAlgorithm& planned : fake().algorithms) {
    const bool may_reduce =
        planned.reduction == 0 || (planned.reduction & preference->reductions) != 0;
    if (!may_reduce || planned.workspace_bytes > preference->workspace || *count == asked) continue;
    results[(*count)++] = result_of(planned, *preference);
  }
  return Result::success;
}

EXPORTED Result cublasLtMatmulAlgoInit(Handle, ComputeType, DataType, DataType, DataType, DataType,
                                       DataType, int id, AlgorithmData* data) {
  ENTER();
  const auto known = std::ranges::find(fake().algorithms, id, &tests::FakeAlgorithm::id);
  if (known == fake().algorithms.end()) return Result::not_supported;
  Words words;
  words.id = id;
  words.uses_tensor_cores = known->uses_tensor_cores ? 1 : 0;
  words.has_shapes = known->has_shapes ? 1 : 0;
  set_words(*data, words);
  return Result::success;
}

EXPORTED Result cublasLtMatmulAlgoCheck(Handle, MatmulDescriptor operation, MatrixLayout a,
                                        MatrixLayout b, MatrixLayout c, MatrixLayout d,
                                        const AlgorithmData* data, HeuristicResult* result) {
  ENTER();
  if (!is_supported(*operation, *a, *b, *c, *d)) return Result::not_supported;
  const Words words = words_of(*data);
  for (const tests::FakeAlgorithm& planned : fake().algorithms) {
    if (planned.id != words.id || planned.tile != words.tile) continue;
    result->workspace_bytes = planned.workspace_bytes;
    result->waves = planned.waves;
    return Result::success;
  }
  return Result::not_supported;
}

EXPORTED Result cublasLtMatmulAlgoConfigSetAttribute(AlgorithmData* data, ConfigAttribute attribute,
                                                     const void* from, std::size_t bytes) {
  ENTER();
  Words words = words_of(*data);
  if (words.has_shapes == 0 && is_shape(attribute)) return Result::not_supported;
  const Result result = [&] {
    switch (attribute) {
      case ConfigAttribute::id:
        return take(words.id, from, bytes);
      case ConfigAttribute::tile:
        return take(words.tile, from, bytes);
      case ConfigAttribute::splits:
        return take(words.splits, from, bytes);
      case ConfigAttribute::reduction_scheme:
        return take(words.reduction, from, bytes);
      case ConfigAttribute::swizzle:
        return take(words.swizzle, from, bytes);
      case ConfigAttribute::custom_option:
        return take(words.option, from, bytes);
      case ConfigAttribute::stages:
        return take(words.stages, from, bytes);
      case ConfigAttribute::inner_shape:
        return take(words.inner, from, bytes);
      case ConfigAttribute::cluster_shape:
        return take(words.cluster, from, bytes);
    }
    return Result::invalid_value;
  }();
  set_words(*data, words);
  return result;
}

EXPORTED Result cublasLtMatmulAlgoConfigGetAttribute(const AlgorithmData* data,
                                                     ConfigAttribute attribute, void* to,
                                                     std::size_t bytes, std::size_t* written) {
  ENTER();
  const Words words = words_of(*data);
  if (words.has_shapes == 0 && is_shape(attribute)) return Result::not_supported;
  const auto give = [&](const auto& field) {
    if (bytes != sizeof field) return Result::invalid_value;
    std::memcpy(to, &field, bytes);
    *written = bytes;
    return Result::success;
  };
  switch (attribute) {
    case ConfigAttribute::id:
      return give(words.id);
    case ConfigAttribute::tile:
      return give(words.tile);
    case ConfigAttribute::splits:
      return give(words.splits);
    case ConfigAttribute::reduction_scheme:
      return give(words.reduction);
    case ConfigAttribute::swizzle:
      return give(words.swizzle);
    case ConfigAttribute::custom_option:
      return give(words.option);
    case ConfigAttribute::stages:
      return give(words.stages);
    case ConfigAttribute::inner_shape:
      return give(words.inner);
    case ConfigAttribute::cluster_shape:
      return give(words.cluster);
  }
  return Result::invalid_value;
}

EXPORTED Result cublasLtMatmulAlgoCapGetAttribute(const AlgorithmData* data, CapabilityAttribute,
                                                  void* to, std::size_t bytes,
                                                  std::size_t* written) {
  ENTER();
  const std::uint64_t flags = words_of(*data).uses_tensor_cores != 0 ? 2 : 1;
  if (bytes != sizeof flags) return Result::invalid_value;
  std::memcpy(to, &flags, bytes);
  *written = bytes;
  return Result::success;
}

#ifndef WITHOUT_MATMUL
EXPORTED Result cublasLtMatmul(Handle handle, MatmulDescriptor operation, const void* alpha,
                               const void* a, MatrixLayout layout_a, const void* b,
                               MatrixLayout layout_b, const void* beta, const void* c,
                               MatrixLayout layout_c, void* d, MatrixLayout layout_d,
                               const AlgorithmData* algorithm, void* workspace,
                               std::size_t workspace_bytes, CudaStream stream) {
  ENTER();
  if (fake().on_call) fake().on_call();
  const Words words = words_of(*algorithm);
  const bool are_aligned = is_aligned(a, std::min(words.alignments, 16u)) &&
                           is_aligned(b, std::min(words.alignments, 16u));
  if (handle == nullptr || !are_aligned || (workspace_bytes != 0 && workspace == nullptr))
    return Result::invalid_value;
  {
    const Lock lock(fake_mutex());
    fake().matmuls.push_back({a, b, c, d, operation->bias, workspace, workspace_bytes, stream,
                              words.origin != from_heuristics});
  }
  Call{*operation,
       *layout_a,
       *layout_b,
       *layout_c,
       *layout_d,
       a,
       b,
       c,
       d,
       read(operation->scale, alpha, 0),
       read(operation->scale, beta, 0)}
      .run();
  return Result::success;
}
#endif
}

}  // namespace gemmery::cublaslt
