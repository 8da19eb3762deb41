/* SPDX-License-Identifier: Apache-2.0 */
/* From plain C, with no C++ and no compiler of kernels: loads a file that `gemmery compile` or
 * 08_ahead_of_time wrote, finds the best of its kernels for a problem, runs it, and checks every
 * element of the result. Usage: 09_plain_c FILE [DEVICE]; the default device is cuda:0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gemmery/gemmery.h>

enum { M = 128, N = 256, K = 128 };
static const char* const problem = "gemm 128x256x128 a=bf16 b=bf16:c out=f32";

/* Small whole numbers, so that the result is exact; as float and, in A and B, as bfloat16: the
 * upper half of a float. */
static int number_a(int row, int k) { return (row * 7 + k * 3) % 9 - 4; }
static int number_b(int k, int column) { return (k * 5 + column * 11) % 7 - 3; }

static uint16_t to_bfloat16(int number) {
  const float value = (float)number;
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

/* Everything that is made, so that it can be freed in one place. */
struct Scene {
  gemmery_bundle* bundle;
  gemmery_stream* stream;
  gemmery_buffer *a, *b, *out;
  gemmery_launch* launch;
};

#define TRY(call)                                                            \
  do {                                                                       \
    const gemmery_result result = (call);                                    \
    if (result != GEMMERY_OK) {                                              \
      printf("%s: %s\n", gemmery_result_name(result), gemmery_last_error()); \
      return result;                                                         \
    }                                                                        \
  } while (0)

static gemmery_result upload(struct Scene* scene, gemmery_device device) {
  static uint16_t a[M][K], b[N][K]; /* B is column major: its columns lie one after the other */
  for (int k = 0; k < K; ++k) {
    for (int row = 0; row < M; ++row) a[row][k] = to_bfloat16(number_a(row, k));
    for (int column = 0; column < N; ++column) b[column][k] = to_bfloat16(number_b(k, column));
  }
  TRY(gemmery_make_stream(device, &scene->stream));
  TRY(gemmery_make_buffer(sizeof a, scene->stream, &scene->a));
  TRY(gemmery_make_buffer(sizeof b, scene->stream, &scene->b));
  TRY(gemmery_make_buffer(sizeof(float) * M * N, scene->stream, &scene->out));
  TRY(gemmery_copy_in(scene->a, a, sizeof a, scene->stream));
  TRY(gemmery_copy_in(scene->b, b, sizeof b, scene->stream));
  return GEMMERY_OK;
}

static gemmery_result describe(const gemmery_kernel* kernel) {
  gemmery_kernel_info info = GEMMERY_INIT(gemmery_kernel_info);
  TRY(gemmery_describe_kernel(kernel, &info));
  printf("%s\n  targets %s, %s\n  %d registers, %d bytes spilled\n", info.name, info.targets,
         info.design, (int)info.registers, (int)info.spill_bytes);
  return GEMMERY_OK;
}

/* The number of elements that are wrong. */
static int count_faults(const float* out) {
  int faults = 0;
  for (int row = 0; row < M; ++row) {
    for (int column = 0; column < N; ++column) {
      int sum = 0;
      for (int k = 0; k < K; ++k) sum += number_a(row, k) * number_b(k, column);
      faults += out[row * N + column] != 2.0f * (float)sum;
    }
  }
  return faults;
}

static gemmery_result download_and_check(const struct Scene* scene, const char* how) {
  static float out[M * N];
  TRY(gemmery_copy_out(out, scene->out, sizeof out, scene->stream));
  TRY(gemmery_synchronize(scene->stream));
  const int faults = count_faults(out);
  printf("%s: %d of %d elements wrong\n", how, faults, M * N);
  memset(out, 0xff, sizeof out);
  TRY(gemmery_copy_in(scene->out, out, sizeof out, scene->stream));
  TRY(gemmery_synchronize(scene->stream));
  return faults == 0 ? GEMMERY_OK : GEMMERY_INTERNAL;
}

static gemmery_result play(struct Scene* scene, const char* path, const char* device_name) {
  gemmery_device device;
  TRY(gemmery_parse_device(device_name, &device));
  TRY(gemmery_load_bundle(path, &scene->bundle));
  printf("%d kernels in %s\n", (int)gemmery_count_kernels(scene->bundle), path);
  const gemmery_kernel* kernel = NULL;
  TRY(gemmery_find_kernel(scene->bundle, problem, device, &kernel));
  TRY(describe(kernel));
  TRY(upload(scene, device));

  const int64_t a_shape[] = {M, K}, b_shape[] = {K, N}, out_shape[] = {M, N};
  const int64_t b_strides[] = {1, K};
  const gemmery_tensor a = {.data = gemmery_buffer_data(scene->a),
                            .device = device,
                            .ndim = 2,
                            .dtype_code = 4,
                            .dtype_bits = 16,
                            .dtype_lanes = 1,
                            .shape = a_shape};
  gemmery_tensor b = a;
  b.data = gemmery_buffer_data(scene->b);
  b.shape = b_shape;
  b.strides = b_strides;
  gemmery_tensor out = a;
  out.data = gemmery_buffer_data(scene->out);
  out.shape = out_shape;
  out.dtype_code = 2;
  out.dtype_bits = 32;
  gemmery_gemm gemm = GEMMERY_INIT(gemmery_gemm);
  gemm.a = &a;
  gemm.b = &b;
  gemm.out = &out;
  gemm.alpha = 2;

  void* const stream = gemmery_stream_handle(scene->stream);
  TRY(gemmery_run(kernel, &gemm, stream, NULL));
  TRY(download_and_check(scene, "run"));

  TRY(gemmery_bind(kernel, &gemm, &scene->launch));
  gemmery_free_bundle(scene->bundle); /* the launch keeps what it needs */
  scene->bundle = NULL;
  TRY(gemmery_put(scene->launch, stream));
  return download_and_check(scene, "bound");
}

int main(int argc, char** argv) {
  if (argc < 2) {
    printf("usage: %s FILE [DEVICE]\n", argv[0]);
    return 2;
  }
  struct Scene scene = {0};
  const gemmery_result result = play(&scene, argv[1], argc > 2 ? argv[2] : "cuda:0");
  gemmery_free_launch(scene.launch);
  gemmery_free_buffer(scene.a);
  gemmery_free_buffer(scene.b);
  gemmery_free_buffer(scene.out);
  gemmery_free_stream(scene.stream);
  gemmery_free_bundle(scene.bundle);
  return result == GEMMERY_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
