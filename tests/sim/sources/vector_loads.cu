// Vector loads and stores of every width, cache operators and hints.
extern "C" __global__ void vector_loads(const float4* a, const int2* b, const uchar4* c, const double2* d,
                                        const short4* s, float4* out, int2* out2, uchar4* out3, double2* out4,
                                        short4* out5) {
  int i = threadIdx.x;
  float4 v = __ldg(a + i);
  v.x += v.w;
  out[i] = v;
  int2 w = __ldcs(b + i);
  __stcg(out2 + i, make_int2(w.y, w.x));
  uchar4 u = c[i];
  u.x ^= u.w;
  out3[i] = u;
  double2 e = __ldcg(d + i);
  __stcs(out4 + i, make_double2(e.y, e.x));
  short4 t = __ldca(s + i);
  __stwt(out5 + i, make_short4(t.w, t.z, t.y, t.x));
}

extern "C" __global__ void narrow_loads(const signed char* a, const unsigned short* b, const bool* c,
                                        const long long* d, int* out, volatile int* flag) {
  int i = threadIdx.x;
  out[i] = a[i] + b[i] + c[i] + (int)__ldlu(d + i) + (int)__ldcv(d + i) + flag[0];
  flag[1] = out[i];
}
