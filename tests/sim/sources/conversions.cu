// Conversions between all numeric types.
template <typename To, typename From>
__device__ void convert(To* to, const From* from) {
  to[threadIdx.x] = static_cast<To>(from[threadIdx.x]);
}
extern "C" __global__ void conversions(signed char* a, unsigned char* b, short* c, unsigned short* d, int* e,
                                       unsigned* f, long long* g, unsigned long long* h, float* x, double* y) {
  convert(a, x); convert(b, x); convert(c, x); convert(d, x); convert(e, x); convert(f, x); convert(g, x); convert(h, x);
  convert(x, a); convert(x, b); convert(x, c); convert(x, d); convert(x, e); convert(x, f); convert(x, g); convert(x, h);
  convert(a, y); convert(b, y); convert(c, y); convert(d, y); convert(e, y); convert(f, y); convert(g, y); convert(h, y);
  convert(y, a); convert(y, b); convert(y, c); convert(y, d); convert(y, e); convert(y, f); convert(y, g); convert(y, h);
  convert(x, y); convert(y, x); convert(a, e); convert(e, a); convert(g, e); convert(h, b); convert(c, g); convert(d, f);
}
extern "C" __global__ void rounded_conversions(float* x, double* y, int* i, unsigned* u, long long* l) {
  int t = threadIdx.x;
  i[t] = __float2int_rn(x[t]) + __float2int_ru(x[t]) + __float2int_rd(x[t]) + __double2int_rn(y[t]);
  u[t] = __float2uint_rn(x[t]) + __float2uint_rz(x[t]) + __double2uint_ru(y[t]) + __float_as_uint(x[t]);
  l[t] = __float2ll_rn(x[t]) + __double2ll_rd(y[t]) + __float2ull_ru(x[t]) + __double_as_longlong(y[t]);
  x[t] = __int2float_rz(i[t]) + __uint2float_ru(u[t]) + __ll2float_rd(l[t]) + __double2float_rz(y[t]) +
         __double2float_ru(y[t]) + __int_as_float(i[t]);
  y[t] = __ll2double_rz(l[t]) + __ull2double_rn(l[t]) + __hiloint2double(i[t], u[t]) + __double2hiint(y[t]);
}
