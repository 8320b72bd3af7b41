// Surface reads and writes of every geometry, kind of value and boundary mode, and surface
// instructions that inline PTX can name.
#define READ(type, name, ...) *reinterpret_cast<type*>(o) = name<type>(s, __VA_ARGS__); o += 16;
#define WRITE(type, name, ...) name(*reinterpret_cast<const type*>(o), s, __VA_ARGS__); o += 16;
#define EACH(DO, name, ...)                                                              \
  DO(char, name, __VA_ARGS__) DO(uchar2, name, __VA_ARGS__) DO(uchar4, name, __VA_ARGS__) \
  DO(short, name, __VA_ARGS__) DO(ushort2, name, __VA_ARGS__) DO(short4, name, __VA_ARGS__) \
  DO(int, name, __VA_ARGS__) DO(uint2, name, __VA_ARGS__) DO(int4, name, __VA_ARGS__)    \
  DO(float, name, __VA_ARGS__) DO(float2, name, __VA_ARGS__) DO(float4, name, __VA_ARGS__) \
  DO(long long, name, __VA_ARGS__) DO(ulonglong2, name, __VA_ARGS__)
#define ALL(DO, verb)                                                                     \
  EACH(DO, surf1D##verb, i) EACH(DO, surf2D##verb, i, j, cudaBoundaryModeZero)            \
  EACH(DO, surf3D##verb, i, j, k, cudaBoundaryModeClamp) EACH(DO, surf1DLayered##verb, i, j) \
  EACH(DO, surf2DLayered##verb, i, j, k, cudaBoundaryModeTrap)                            \
  EACH(DO, surfCubemap##verb, i, j, k) EACH(DO, surfCubemapLayered##verb, i, j, k)
extern "C" __global__ void reads(cudaSurfaceObject_t s, char* o, int i, int j, int k) {
  ALL(READ, read)
}
extern "C" __global__ void writes(cudaSurfaceObject_t s, const char* o, int i, int j, int k) {
  ALL(WRITE, write)
}
extern "C" __global__ void forms(cudaSurfaceObject_t s, unsigned* u, int i, int j) {
  asm volatile("suld.b.1d.cg.b32.trap %0, [%1, %2];" : "=r"(u[0]) : "l"(s), "r"(i));
  asm volatile("sust.b.2d.wt.v2.b32.zero [%0, {%1, %2}], {%3, %4};" :: "l"(s), "r"(i), "r"(j), "r"(u[1]), "r"(u[2]));
  asm volatile("sust.p.2d.v4.b32.clamp [%0, {%1, %2}], {%3, %3, %4, %4};" :: "l"(s), "r"(i), "r"(j), "r"(u[3]), "r"(u[4]));
  asm volatile("sust.p.1d.b32.trap [%0, {%1}], {%2};" :: "l"(s), "r"(i), "r"(u[5]));
  asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" :: "l"(s), "r"(i), "r"(j), "r"(u[6]));
  asm volatile("sured.b.min.1d.s32.clamp [%0, {%1}], %2;" :: "l"(s), "r"(i), "r"(u[7]));
  asm volatile("sured.b.max.1d.u64.zero [%0, {%1}], %2;" :: "l"(s), "r"(i), "l"((unsigned long long)u[8]));
  asm volatile("sured.b.or.1d.b32.zero [%0, {%1}], %2;" :: "l"(s), "r"(i), "r"(u[9]));
  asm volatile("suq.height.b32 %0, [%1];" : "=r"(u[10]) : "l"(s));
}
