// A tile of a matrix product the Hopper way: tensor copies, a ring of barriers, wgmma; a warpgroup
// that multiplies and a warp that loads.
struct alignas(64) TensorMap {
  char bytes[128];
};

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ inline void init(unsigned barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}
__device__ inline void expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ inline void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra AGAIN;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ inline void load(unsigned target, const TensorMap* map, int x, int y, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(target),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
__device__ inline unsigned long long descriptor(unsigned address) {
  // Rows of 128 bytes, swizzled; eight rows are 1024 bytes.
  return (address & 0x3ffffu) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
__device__ inline void multiply(float (&d)[32], unsigned long long a, unsigned long long b,
                                int adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19,"
      " %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(adds));
}

constexpr int kStages = 3, kTileBytes = 64 * 128;

/// c[64 * gridDim.y][64 * gridDim.x] = a[m][k] * b[n][k]^T for k a multiple of 64, in bfloat16.
extern "C" __global__ void __launch_bounds__(160, 1)
hopper_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
            float* c, int n, int k) {
  __shared__ alignas(1024) char a[kStages][kTileBytes];
  __shared__ alignas(1024) char b[kStages][kTileBytes];
  __shared__ alignas(8) unsigned long long full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      init(shared_address(&full[s]), 1);
      init(shared_address(&empty[s]), 128);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x >= 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 128) {
      for (int i = 0; i < k / 64; ++i) {
        const int s = i % kStages, round = i / kStages;
        if (round > 0) wait(shared_address(&empty[s]), (round - 1) & 1);
        const unsigned barrier = shared_address(&full[s]);
        expect(barrier, 2 * kTileBytes);
        load(shared_address(a[s]), &map_a, i * 64, blockIdx.y * 64, barrier);
        load(shared_address(b[s]), &map_b, i * 64, blockIdx.x * 64, barrier);
      }
    }
    return;
  }
  float d[32];
  for (int i = 0; i < 32; ++i) d[i] = 0;
  for (int i = 0; i < k / 64; ++i) {
    const int s = i % kStages;
    wait(shared_address(&full[s]), i / kStages & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int step = 0; step < 4; ++step)
      multiply(d, descriptor(shared_address(a[s]) + step * 32),
               descriptor(shared_address(b[s]) + step * 32), i != 0 || step != 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    arrive(shared_address(&empty[s]));
  }
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.y * 64 + threadIdx.x / 32 * 16 + lane / 4;
  for (int i = 0; i < 32; ++i)
    c[(row + i / 2 % 2 * 8) * n + blockIdx.x * 64 + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
}
