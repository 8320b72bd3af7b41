// The demo's kernels: a separable Gaussian blur, Sobel edges and a histogram over one grey image.
// RADIUS and TILE come as defines.

__constant__ float weights[2 * RADIUS + 1];

__device__ int clamped(int i, int count) { return min(max(i, 0), count - 1); }

// One block blurs TILE pixels of a row; they and their halo wait in shared memory.
__global__ void blur_rows(const float* in, float* out, int width) {
    __shared__ float tile[TILE + 2 * RADIUS];
    const float* row = in + blockIdx.y * width;
    int first = blockIdx.x * TILE;
    for (int i = threadIdx.x; i < TILE + 2 * RADIUS; i += blockDim.x)
        tile[i] = row[clamped(first + i - RADIUS, width)];
    __syncthreads();
    int x = first + threadIdx.x;
    if (x >= width) return;
    float sum = 0;
    for (int k = 0; k <= 2 * RADIUS; ++k) sum += weights[k] * tile[threadIdx.x + k];
    out[blockIdx.y * width + x] = sum;
}

// One block of 32 x 8 threads blurs 32 columns of 8 rows.
__global__ void blur_columns(const float* in, float* out, int width, int height) {
    __shared__ float tile[8 + 2 * RADIUS][32];
    int x = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 8;
    for (int i = threadIdx.y; i < 8 + 2 * RADIUS; i += 8)
        tile[i][threadIdx.x] = in[clamped(first + i - RADIUS, height) * width + clamped(x, width)];
    __syncthreads();
    int y = first + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int k = 0; k <= 2 * RADIUS; ++k) sum += weights[k] * tile[threadIdx.y + k][threadIdx.x];
    out[y * width + x] = sum;
}

// Length of the gradient by Sobel's two 3 x 3 filters; the border pixel repeats outside the image.
__global__ void sobel(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    auto at = [&](int dx, int dy) {
        return in[clamped(y + dy, height) * width + clamped(x + dx, width)];
    };
    float gx = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
    float gy = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
    out[y * width + x] = sqrtf(gx * gx + gy * gy);
}

// Each block counts in shared memory and adds its counts to the global ones.
__global__ void histogram(const unsigned char* in, int* counts, int n) {
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&own[in[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}
