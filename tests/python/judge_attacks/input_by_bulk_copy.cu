// Uses its input as scratch memory by bulk copies, and puts it back.
// expect: cheating finding
// also: compile
__global__ void affine(const float* x, float* y, int n) {
  __shared__ alignas(16) float part[4], kept[4];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0 && n >= 8) {
    for (int k = 0; k < 4; ++k) kept[k] = x[k], part[k] = 0;
    unsigned a = (unsigned)__cvta_generic_to_shared(part);
    unsigned b = (unsigned)__cvta_generic_to_shared(kept);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(x), "r"(a)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(x), "r"(b)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    for (int k = 0; k < 4; ++k) y[k] = 2 * kept[k] + 1;
  }
  if (i < n && (i >= 4 || n < 8)) y[i] = 2 * x[i] + 1;
}
