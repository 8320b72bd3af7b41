// Calls of every kind, loops, traps, printing, the heap, clocks and special registers.
#define KERNEL(name) extern "C" __global__ void name
__device__ __noinline__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ __noinline__ float4 four(float a, double b, char c) { return make_float4(a, (float)b, c, a + c); }
__device__ int plus(int a, int b) { return a + b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ int times(int a, int b) { return a * b; }
typedef int (*Binary)(int, int);
__device__ Binary functions[3] = {plus, minus, times};
struct Shape { virtual __device__ float area() const = 0; virtual __device__ ~Shape() {} };
struct Square : Shape { float s; __device__ Square(float x) : s(x) {} __device__ float area() const override { return s * s; } };
struct Disc : Shape { float r; __device__ Disc(float x) : r(x) {} __device__ float area() const override { return 3 * r * r; } };
KERNEL(calls)(int* x, float4* f) {
  x[threadIdx.x] = ackermann(2, x[threadIdx.x] & 3);
  f[threadIdx.x] = four(f[threadIdx.x].x, f[threadIdx.x].y, (char)x[0]);
}
KERNEL(indirect)(int* x) { x[threadIdx.x] = functions[x[threadIdx.x] % 3](x[threadIdx.x], 7); }
KERNEL(objects)(float* f) {
  Shape* s = threadIdx.x & 1 ? (Shape*)new Square(f[threadIdx.x]) : (Shape*)new Disc(f[threadIdx.x]);
  f[threadIdx.x] = s->area();
  delete s;
}
KERNEL(local_types)(int* x, int n) {
  struct Add { int n; __device__ int operator()(int a) const { return a + n; } } add{n};
  x[threadIdx.x] = add(add(x[threadIdx.x]));
}
KERNEL(switches)(int* x, int n) {
  int r = 0;
  for (int i = 0; i < n; ++i) {
    switch (x[i] & 15) {
      case 0: r += 3; break;
      case 1: r ^= 5; continue;
      case 2: r <<= 1; break;
      case 3: r -= i; break;
      case 4: if (r > 100) goto done; break;
      case 5: r = -r; break;
      case 6: case 7: r /= 3; break;
      case 9: r += x[i]; break;
      case 12: return;
      default: r++;
    }
  }
done:
  x[threadIdx.x] = r;
}
KERNEL(jump_table)(unsigned* x) {
  unsigned r = 0;
  asm volatile("{ T: .branchtargets A, B, C; .reg .u32 i; rem.u32 i, %1, 3; brx.idx i, T;\n A: mov.u32 %0, 1; bra E; B: mov.u32 %0, 2; bra.uni E; C: mov.u32 %0, 3; E: }" : "+r"(r) : "r"(x[threadIdx.x]));
  x[threadIdx.x] = r;
}
KERNEL(prints)(int* x) {
  printf("%d %u %lld %f %s %c %p %%\n", x[0], 2u, 3ll, 4.5, "text", 'c', (void*)x);
  if (x[0] < 0) __trap();
  if (x[0] == 77) __brkpt();
}
KERNEL(heap)(int** x, int n) {
  x[threadIdx.x] = (int*)malloc(n * sizeof(int));
  if (x[threadIdx.x] != nullptr) x[threadIdx.x][n - 1] = 3;
  free(x[threadIdx.x + 64]);
}
KERNEL(times_and_places)(unsigned long long* x) {
  unsigned long long r = clock64() + clock();
  __nanosleep(100);
  unsigned u = 0, v;
#define READ(name) asm volatile("mov.u32 %0, %" name ";" : "=r"(v)); u += v;
  READ("%laneid") READ("%warpid") READ("%nwarpid") READ("%smid") READ("%nsmid") READ("%lanemask_eq") READ("%lanemask_ge") READ("%clock_hi")
  READ("%globaltimer_lo") READ("%total_smem_size") READ("%dynamic_smem_size") READ("%envreg3") READ("%pm0") READ("%ctaid.z") READ("%nctaid.y")
  unsigned long long w;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(w));
  asm volatile("pmevent 3; pmevent.mask 5;");
  x[threadIdx.x] = r + u + w;
}
__global__ void __launch_bounds__(128, 4) bounded(int* x) { x[threadIdx.x] += 1; }
template <typename T, int N> __global__ void generic(T* x) { for (int i = 0; i < N; ++i) x[threadIdx.x] *= x[threadIdx.x + i]; }
template __global__ void generic<float, 3>(float*);
template __global__ void generic<unsigned char, 2>(unsigned char*);
KERNEL(early_exit)(int* x, int n) {
  if (threadIdx.x >= n) return;
  for (int i = threadIdx.x; i < n; i += 3) {
    if (x[i] == 0) break;
    if (__any_sync(__activemask(), x[i] < 0)) asm volatile("exit;");
    x[i] -= 1;
  }
}
