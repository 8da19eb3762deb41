// SPDX-License-Identifier: Apache-2.0
// Blocks add to a record of two words under a lock. The fence behind the acquisition and the one
// before the release order the accesses of different owners.
__device__ int lock = 0;

__global__ void spin_lock(int* record, int value) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(&lock, 0, 1) != 0) {
  }
  __threadfence();
  record[0] += value;  // fault: the owner before has not published its words
  record[1] += record[0];
#ifndef FAULT
  __threadfence();
#endif
  atomicExch(&lock, 0);
}
