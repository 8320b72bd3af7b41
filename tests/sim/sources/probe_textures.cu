// Texture fetches of every function family, geometry and kind of value, and texture instructions
// that inline PTX can name.
#define AT(type, name, ...) *reinterpret_cast<type*>(o) = name<type>(t, __VA_ARGS__); o += 16;
#define EACH(name, ...)                                                                       \
  AT(float, name, __VA_ARGS__) AT(float2, name, __VA_ARGS__) AT(float4, name, __VA_ARGS__)    \
  AT(unsigned char, name, __VA_ARGS__) AT(char2, name, __VA_ARGS__) AT(short, name, __VA_ARGS__) \
  AT(ushort4, name, __VA_ARGS__) AT(int, name, __VA_ARGS__) AT(uint2, name, __VA_ARGS__)      \
  AT(int4, name, __VA_ARGS__)
extern "C" __global__ void plain(cudaTextureObject_t t, char* o, float x, float y, float z, int i) {
  EACH(tex1Dfetch, i) EACH(tex1D, x) EACH(tex2D, x, y) EACH(tex3D, x, y, z)
  EACH(tex1DLayered, x, i) EACH(tex2DLayered, x, y, i)
  EACH(texCubemap, x, y, z) EACH(texCubemapLayered, x, y, z, i)
}
extern "C" __global__ void levels(cudaTextureObject_t t, char* o, float x, float y, float z, int i) {
  EACH(tex1DLod, x, z) EACH(tex2DLod, x, y, z) EACH(tex3DLod, x, y, z, x)
  EACH(tex1DLayeredLod, x, i, z) EACH(tex2DLayeredLod, x, y, i, z)
  EACH(texCubemapLod, x, y, z, x) EACH(texCubemapLayeredLod, x, y, z, i, x)
}
extern "C" __global__ void gradients(cudaTextureObject_t t, char* o, float x, float y, float z, int i) {
  float2 a = make_float2(x, y), b = make_float2(y, z);
  float4 c = make_float4(x, y, z, 0), d = make_float4(z, y, x, 0);
  EACH(tex1DGrad, x, y, z) EACH(tex2DGrad, x, y, a, b) EACH(tex3DGrad, x, y, z, c, d)
  EACH(tex1DLayeredGrad, x, i, y, z) EACH(tex2DLayeredGrad, x, y, i, a, b)
  EACH(texCubemapGrad, x, y, z, c, d) EACH(texCubemapLayeredGrad, x, y, z, i, c, d)
}
#define GATHER(type)                                                      \
  AT(type, tex2Dgather, x, y) AT(type, tex2Dgather, x, y, 0)              \
  AT(type, tex2Dgather, x, y, 1) AT(type, tex2Dgather, x, y, 2) AT(type, tex2Dgather, x, y, 3)
extern "C" __global__ void gathers(cudaTextureObject_t t, char* o, float x, float y) {
  GATHER(float4) GATHER(int4) GATHER(uint4) GATHER(uchar4) GATHER(short4)
}
extern "C" __global__ void resident(cudaTextureObject_t t, float* o, float x, float y, float z, int i) {
  bool there;
  o[0] = tex2D<float>(t, x, y, &there), o[1] = there;
  o[2] = tex3D<float>(t, x, y, z, &there), o[3] = there;
  o[4] = tex2DLayered<float>(t, x, y, i, &there), o[5] = there;
  o[6] = tex2DLod<float>(t, x, y, z, &there), o[7] = there;
  o[8] = tex2Dgather<float4>(t, x, y, &there, 1).x, o[9] = there;
}
extern "C" __global__ void forms(cudaTextureObject_t t, unsigned* u, float x, float y, int i, int j) {
  asm("tex.1d.v4.f32.f32 {%0,_,_,_}, [%1, %2];" : "=r"(u[0]) : "l"(t), "f"(x));
  asm("tex.base.2d.v4.u32.f32 {%0,_,_,_}, [%1, {%2, %3}];" : "=r"(u[1]) : "l"(t), "f"(x), "f"(y));
  asm("tex.2d.v4.s32.s32 {%0,_,_,_}, [%1, {%2, %3}], {1, -2};" : "=r"(u[2]) : "l"(t), "r"(i), "r"(j));
  asm("tex.1d.v4.s32.f32 {%0,_,_,_}, [%1, {%2}], 3;" : "=r"(u[3]) : "l"(t), "f"(x));
  asm("tex.2d.v2.f16x2.f32 {%0,_}, [%1, {%2, %3}];" : "=r"(u[4]) : "l"(t), "f"(x), "f"(y));
  asm("tld4.g.a2d.v4.u32.f32 {%0,_,_,_}, [%1, {%2, %3, %4, %4}];" : "=r"(u[5]) : "l"(t), "r"(i), "f"(x), "f"(y));
  asm("tld4.a.2d.v4.u32.f32 {%0,_,_,_}, [%1, {%2, %3}], {-1, 1};" : "=r"(u[6]) : "l"(t), "f"(x), "f"(y));
  asm("txq.width.b32 %0, [%1];" : "=r"(u[7]) : "l"(t));
  asm("txq.array_size.b32 %0, [%1];" : "=r"(u[8]) : "l"(t));
  asm("txq.level.depth.b32 %0, [%1], %2;" : "=r"(u[9]) : "l"(t), "r"(i));
}
