/* SPDX-License-Identifier: Apache-2.0 */
/* The C API loads kernels that were compiled ahead of time (gemmery compile) from their file,
 * describes them and runs them. It needs C11 or later, no C++ and no kernel compiler.
 *
 * Results. Every function that can fail returns a gemmery_result; gemmery_last_error() returns the
 * message of the calling thread's last failure. No C++ exception leaves the library. A function
 * that fails sets the handle that it was to return to NULL and leaves other outputs unchanged.
 *
 * Structs. The caller sets struct_size, the first member of every struct that may grow, to sizeof
 * of the struct as it was compiled (GEMMERY_INIT does). A later library fills and reads no more
 * than that; members that the caller's struct lacks count as zero.
 *
 * Threads. Bundles and kernels never change after they were loaded: any number of threads may use
 * them at the same time. A gemmery_launch belongs to one thread at a time. The caller must not
 * free an object while another thread uses it. A child process that was forked after CUDA was used
 * gets GEMMERY_UNAVAILABLE, as CUDA itself does not work there.
 *
 * Lifetime. A kernel belongs to its bundle. A launch stays valid after its bundle was freed. NULL
 * is legal for every _free and does nothing. */
#ifndef GEMMERY_GEMMERY_H
#define GEMMERY_GEMMERY_H

#include <stddef.h>
#include <stdint.h>

#include <gemmery/export.hpp> /* the preprocessor only */

#ifdef __cplusplus
extern "C" {
#endif

/* --- results --- */

typedef enum gemmery_result {
  GEMMERY_OK = 0,
  GEMMERY_INVALID_ARGUMENT = 1, /* the caller's values contradict each other or this header */
  GEMMERY_UNSUPPORTED = 2,      /* legal, but not supported by this kernel or file */
  GEMMERY_UNAVAILABLE = 3,      /* a library, device or service is missing */
  GEMMERY_COMPILE = 4,
  GEMMERY_LAUNCH = 5, /* the driver refused or lost a launch */
  GEMMERY_OUT_OF_MEMORY = 6,
  GEMMERY_IO = 7,
  GEMMERY_INTERNAL = 8 /* a bug in gemmery */
} gemmery_result;

/* The message of this thread's last failure: operand, expected, got, hint. "" if there was none.
 * Valid until this thread's next call that fails. */
GEMMERY_API const char* gemmery_last_error(void);
/* "GEMMERY_IO"; "unknown" for other numbers. */
GEMMERY_API const char* gemmery_result_name(gemmery_result result);
/* "MAJOR.MINOR.PATCH" of the library. */
GEMMERY_API const char* gemmery_library_version(void);

/* A zeroed struct with its struct_size set: gemmery_gemm gemm = GEMMERY_INIT(gemmery_gemm); */
#ifdef __cplusplus
#define GEMMERY_INIT(type)            \
  [] {                                \
    type value{};                     \
    value.struct_size = sizeof value; \
    return value;                     \
  }()
#else
#define GEMMERY_INIT(type) \
  { .struct_size = sizeof(type) }
#endif

/* --- devices and streams --- */

/* Device types: DLPack's numbers, and one of our own. */
enum {
  GEMMERY_CPU = 1,
  GEMMERY_CUDA = 2,
  GEMMERY_EMULATED = 1000 /* the emulator; its index is a row of gemmery's device table */
};

typedef struct gemmery_device {
  int32_t type;
  int32_t index;
} gemmery_device;

/* "cuda:0", "emulated:h200". The device is not opened; its first use shows whether it exists. */
GEMMERY_API gemmery_result gemmery_parse_device(const char* text, gemmery_device* device);
/* The number of GPUs that CUDA finds; 0 without a driver. */
GEMMERY_API gemmery_result gemmery_count_devices(int32_t* count);

/* --- bundles: files of compiled kernels --- */

typedef struct gemmery_bundle gemmery_bundle;
typedef struct gemmery_kernel gemmery_kernel;

/* Reads the whole file and checks all of it. */
GEMMERY_API gemmery_result gemmery_load_bundle(const char* path, gemmery_bundle** bundle);
GEMMERY_API void gemmery_free_bundle(gemmery_bundle* bundle);

GEMMERY_API size_t gemmery_count_kernels(const gemmery_bundle* bundle);
/* The kernel at an index from 0, in the order of the file. */
GEMMERY_API gemmery_result gemmery_get_kernel(const gemmery_bundle* bundle, size_t index,
                                              const gemmery_kernel** kernel);
/* The kernel of the bundle that is predicted to be the fastest on a problem,
 * "gemm 4096x4096x8192 a=bf16 b=bf16:c", on a device. GEMMERY_UNSUPPORTED if none supports it,
 * with the reason of each. */
GEMMERY_API gemmery_result gemmery_find_kernel(const gemmery_bundle* bundle, const char* problem,
                                               gemmery_device device,
                                               const gemmery_kernel** kernel);

/* The description of a kernel. The strings are valid as long as the bundle. */
typedef struct gemmery_kernel_info {
  size_t struct_size;
  const char* name;     /* stable, unique, versioned */
  const char* provider; /* "templates" */
  const char* family;   /* "sm90" */
  const char* targets;  /* those with code in the file: "sm_80 sm_90a" */
  const char* design;   /* "tile=128x256x64 stages=4" */
  const char* epilogue; /* "D = alpha * accum + beta * C" */
  const char* problems; /* problem lines that it was compiled for, each with a newline */
  const char* source;   /* CUDA C++ */
  const char* log;      /* the compiler's output */
  int32_t registers;    /* of the first target; -1: not known */
  int32_t static_shared_bytes;
  int32_t spill_bytes;   /* stored and loaded */
  int32_t deterministic; /* 1: equal inputs give equal bits */
} gemmery_kernel_info;

GEMMERY_API gemmery_result gemmery_describe_kernel(const gemmery_kernel* kernel,
                                                   gemmery_kernel_info* info);

/* --- operands --- */

/* A strided view of memory, with DLPack's meaning: types by code and bits, strides in elements. */
typedef struct gemmery_tensor {
  void* data; /* of the element of index 0 in every dimension */
  gemmery_device device;
  int32_t ndim;       /* 2 or 3 for operands of a GEMM */
  uint8_t dtype_code; /* DLPack: 0 int, 1 uint, 2 float, 4 bfloat, 8-17 float8 forms */
  uint8_t dtype_bits;
  uint16_t dtype_lanes; /* 1 */
  const int64_t* shape;
  const int64_t* strides; /* NULL: packed, row major */
  uint64_t byte_offset;
} gemmery_tensor;

/* A scale or a zero point: a value for each block of an operand's elements, so many rows of A
 * (columns of B) by so many elements of k; 0 means all of them. */
typedef struct gemmery_companion {
  gemmery_tensor values;
  int32_t block_rows;
  int32_t block_k;
  int32_t is_swizzled; /* 0: of any strides; 1: tiles of 128 rows and 4 blocks of k */
} gemmery_companion;

/* What belongs to an operand besides its elements: (element - zero) * scale * scale, or
 * table[element] * scale * scale (gemmery/scales.hpp). */
typedef struct gemmery_scaling {
  size_t struct_size;
  const gemmery_companion* scales; /* at most two, the one that varies along k first */
  int32_t scale_count;
  int32_t is_prepared;                 /* 1: elements in the order of prepare_operand */
  const gemmery_companion* zero_point; /* NULL: none */
  const float* table;                  /* sixteen numbers of codes of uint4, read now; NULL: none */
} gemmery_scaling;

/* out = alpha * A @ B + beta * C, A (M,K) or (L,M,K), B (K,N) or (L,K,N), out (M,N) or (L,M,N). */
typedef struct gemmery_gemm {
  size_t struct_size;
  const gemmery_tensor* a;
  const gemmery_tensor* b;
  const gemmery_tensor* c; /* NULL: no C, beta must be 0; not read if beta is 0 */
  const gemmery_tensor* out;
  double alpha; /* GEMMERY_INIT sets 0; with 0, A and B are not read */
  double beta;
  const char* accumulator; /* "f32"; NULL: f64 for f64, int32 for integers, f32 otherwise */
  const char* math;        /* NULL: "native" */
  /* Batches by an array of pointers. 0: the tensor's data points to elements. Otherwise it points
   * to L addresses in the device's memory, one for each matrix of a tensor (L, rows, columns) whose
   * strides[0] is ignored. The number is the alignment of every address in bytes, a power of two
   * not below an element's width. Kernels read the array: it may change between launches. */
  int32_t a_pointers;
  int32_t b_pointers;
  int32_t c_pointers;
  int32_t out_pointers;
  const gemmery_scaling* a_scaling; /* NULL: none */
  const gemmery_scaling* b_scaling;
} gemmery_gemm;

/* Scratch memory on the operands' device, its address a multiple of 256. */
typedef struct gemmery_workspace {
  size_t struct_size;
  void* data;
  size_t bytes;
} gemmery_workspace;

/* GEMMERY_OK if the kernel supports these operands, else GEMMERY_UNSUPPORTED with the reason. */
GEMMERY_API gemmery_result gemmery_supports(const gemmery_kernel* kernel, const gemmery_gemm* gemm);
GEMMERY_API gemmery_result gemmery_get_workspace_size(const gemmery_kernel* kernel,
                                                      const gemmery_gemm* gemm, size_t* bytes);

/* --- running --- */

/* Loads the kernel on a device. gemmery_run may then be captured into a graph there. */
GEMMERY_API gemmery_result gemmery_load_kernel(const gemmery_kernel* kernel, gemmery_device device);

/* Enqueues the work on a stream (CUstream or cudaStream_t; NULL: the default stream) and returns.
 * `workspace` may be NULL: memory is then allocated from gemmery's pool in stream order. That is
 * not possible while the stream is captured. */
GEMMERY_API gemmery_result gemmery_run(const gemmery_kernel* kernel, const gemmery_gemm* gemm,
                                       void* stream, const gemmery_workspace* workspace);

/* A prepared launch: parameters packed, workspace reserved. It can be launched many times. */
typedef struct gemmery_launch gemmery_launch;

GEMMERY_API gemmery_result gemmery_bind(const gemmery_kernel* kernel, const gemmery_gemm* gemm,
                                        gemmery_launch** launch);
/* Replaces the memory (or the array of pointers) of "A", "B", "C", "out", "scale_a", "scale_a.1" (the
 * second one), "zero_a", likewise of B; shape, strides and alignment stay the same. */
GEMMERY_API gemmery_result gemmery_set_data(gemmery_launch* launch, const char* operand,
                                            const void* data);
GEMMERY_API gemmery_result gemmery_set_scalars(gemmery_launch* launch, double alpha, double beta);
GEMMERY_API gemmery_result gemmery_put(gemmery_launch* launch, void* stream);
GEMMERY_API void gemmery_free_launch(gemmery_launch* launch);

/* --- memory and streams, for programs without their own --- */

typedef struct gemmery_buffer gemmery_buffer;
typedef struct gemmery_stream gemmery_stream;

GEMMERY_API gemmery_result gemmery_make_stream(gemmery_device device, gemmery_stream** stream);
/* The stream as gemmery_run and gemmery_put take it. */
GEMMERY_API void* gemmery_stream_handle(const gemmery_stream* stream);
/* Waits until all work of the stream is done; GEMMERY_LAUNCH if any of it failed. */
GEMMERY_API gemmery_result gemmery_synchronize(const gemmery_stream* stream);
GEMMERY_API void gemmery_free_stream(gemmery_stream* stream);

/* Memory of the stream's device, aligned to 256 bytes. Free it before its stream. */
GEMMERY_API gemmery_result gemmery_make_buffer(size_t bytes, const gemmery_stream* stream,
                                               gemmery_buffer** buffer);
GEMMERY_API void* gemmery_buffer_data(const gemmery_buffer* buffer);
GEMMERY_API void gemmery_free_buffer(gemmery_buffer* buffer);
/* Copies between the host and a buffer in stream order. The host memory must stay valid and
 * unchanged until the stream has been synchronised. */
GEMMERY_API gemmery_result gemmery_copy_in(gemmery_buffer* buffer, const void* host, size_t bytes,
                                           const gemmery_stream* stream);
GEMMERY_API gemmery_result gemmery_copy_out(void* host, const gemmery_buffer* buffer, size_t bytes,
                                            const gemmery_stream* stream);

#ifdef __cplusplus
}
#endif

#endif /* GEMMERY_GEMMERY_H */
