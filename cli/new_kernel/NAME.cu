// NAME: out = alpha * A @ B, float16 with float32 accumulators, on tensor cores of sm_80 and later.
//
//   global memory -> shared memory -> registers (fragments) -> mma.sync -> accumulators -> out
//
// A block computes a tile of 64 x 64, in steps of 16 along K; each of its 4 warps computes 32 x 32
// of it.

constexpr int tile = 64;       // rows and columns of a block
constexpr int warp_tile = 32;  // of a warp
constexpr int step = 16;       // along K
// Elements from row to row in shared memory. The padding of 8 avoids bank conflicts.
constexpr int pitch = step + 8;

// Elements of A (rows) or of B (columns), contiguous along K.
struct Shared {
  unsigned short a[tile][pitch];
  unsigned short b[tile][pitch];
};

// Loads a step's elements; those outside of a matrix are zero.
__device__ void load(Shared& shared, const unsigned short* a, const unsigned short* b, int m, int n,
                     int k, long long a_leading, long long b_leading, int first_k) {
  const int first_row = blockIdx.y * tile, first_column = blockIdx.x * tile;
  for (int at = threadIdx.x; at < tile * step; at += blockDim.x) {
    const int row = at / step, k_of_a = at % step;
    const bool in_a = first_row + row < m && first_k + k_of_a < k;
    shared.a[row][k_of_a] = in_a ? a[(first_row + row) * a_leading + first_k + k_of_a] : 0;
    const int column = at % tile, k_of_b = at / tile;
    const bool in_b = first_column + column < n && first_k + k_of_b < k;
    shared.b[column][k_of_b] = in_b ? b[(first_k + k_of_b) * b_leading + first_column + column] : 0;
  }
}

// Two adjacent elements along K.
__device__ unsigned pair(const unsigned short* at) {
  return *reinterpret_cast<const unsigned*>(at);
}

// d += a * b for 16 x 8 x 16; the PTX manual shows which lane holds which elements
// (mma.m16n8k16).
__device__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void multiply(float (&sums)[2][4][4], const Shared& shared, int row, int column) {
  const int group = threadIdx.x % 32 / 4, lane_k = threadIdx.x % 4 * 2;
  for (int i = 0; i < 2; ++i) {
    const int r = row + i * 16 + group;
    const unsigned a[4] = {pair(&shared.a[r][lane_k]), pair(&shared.a[r + 8][lane_k]),
                           pair(&shared.a[r][lane_k + 8]), pair(&shared.a[r + 8][lane_k + 8])};
    for (int j = 0; j < 4; ++j) {
      const int c = column + j * 8 + group;
      const unsigned b[2] = {pair(&shared.b[c][lane_k]), pair(&shared.b[c][lane_k + 8])};
      mma(sums[i][j], a, b);
    }
  }
}

__device__ void store(const float (&sums)[2][4][4], float* out, int m, int n, long long out_leading,
                      float alpha, int row, int column) {
  const int group = threadIdx.x % 32 / 4, lane_column = threadIdx.x % 4 * 2;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) {
        const int r = blockIdx.y * tile + row + i * 16 + group + e / 2 * 8;
        const int c = blockIdx.x * tile + column + j * 8 + lane_column + e % 2;
        if (r < m && c < n) out[r * out_leading + c] = alpha * sums[i][j][e];
      }
}

extern "C" __global__ void __launch_bounds__(128)
    NAME(const unsigned short* a, const unsigned short* b, float* out, int m, int n, int k,
         long long a_leading, long long b_leading, long long out_leading, float alpha) {
  __shared__ Shared shared;
  const int warp = threadIdx.x / 32, row = warp / 2 * warp_tile, column = warp % 2 * warp_tile;
  float sums[2][4][4] = {};
  for (int first_k = 0; first_k < k; first_k += step) {
    load(shared, a, b, m, n, k, a_leading, b_leading, first_k);
    __syncthreads();  // the tile is complete
    multiply(sums, shared, row, column);
    __syncthreads();  // all warps have read it
  }
  store(sums, out, m, n, out_leading, alpha, row, column);
}
