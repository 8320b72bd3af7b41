// Structures, small types and pointers to pointers as kernel parameters.
struct Small { char a; short b; int c; };
struct Large { double m[12]; float* p; unsigned char tail[5]; };
extern "C" __global__ void parameters(Small s, Large l, bool flag, char c, unsigned short u, long long w, float** pp,
                                      float3 v) {
  l.p[threadIdx.x] = s.a + s.b + s.c + l.m[threadIdx.x % 12] + flag + c + u + w + pp[0][threadIdx.x] + v.y + l.tail[4];
}
