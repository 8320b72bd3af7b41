// Has no kernel of that name.
// expect: compile
__global__ void other(const float* x, float* y, int n) {}
