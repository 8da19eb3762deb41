/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's own launch, timed from C, for bench/python_host_times.py to compare with: an empty kernel with as many bytes of
 * parameters as our kernels take. Built by that script: cc -O2 -shared -fPIC raw_launch.c -ldl */
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

typedef int (*load_data)(void** module, const void* image);
typedef int (*get_function)(void** function, void* module, const char* name);
typedef int (*launch_kernel)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared, void* stream,
                             void** parameters, void** extra);

static launch_kernel launch;
static void* function;
static char parameters[512];

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry nothing(.param .align 8 .b8 p[512])\n{ ret; }\n";

/* 0, or the driver's error; needs a current context. */
int raw_prepare(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* module = NULL;
  if (driver == NULL) return -1;
  launch = (launch_kernel)dlsym(driver, "cuLaunchKernel");
  const int loaded = ((load_data)dlsym(driver, "cuModuleLoadData"))(&module, ptx);
  return loaded != 0 ? loaded : ((get_function)dlsym(driver, "cuModuleGetFunction"))(&function, module, "nothing");
}

/* Seconds that `count` launches took the host; negative where one failed. */
double raw_seconds(void* stream, int count) {
  struct timespec begin, end;
  void* values[] = {parameters};
  int failed = 0;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < count; ++i) failed |= launch(function, 1, 1, 1, 128, 1, 1, 0, stream, values, NULL);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (failed != 0) return -1;
  return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}
