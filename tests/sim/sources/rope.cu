// Rotary embedding with sinf and cosf.
extern "C" __global__ void rope(float* x, int pairs, int position) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  float angle = position * powf(10000.0f, -2.0f * i / (2 * pairs));
  float s = sinf(angle), c = cosf(angle);
  float a = x[2 * i], b = x[2 * i + 1];
  x[2 * i] = a * c - b * s;
  x[2 * i + 1] = a * s + b * c;
}
