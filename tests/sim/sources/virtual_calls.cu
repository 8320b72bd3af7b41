// Virtual functions of objects made on the device.
struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual int corners() const { return 0; }
  __device__ virtual ~Shape() {}
};
struct Circle : Shape {
  float r;
  __device__ Circle(float radius) : r(radius) {}
  __device__ float area() const override { return 3.14159265f * r * r; }
};
struct Box : Shape {
  float w, h;
  __device__ Box(float width, float height) : w(width), h(height) {}
  __device__ float area() const override { return w * h; }
  __device__ int corners() const override { return 4; }
};
extern "C" __global__ void virtual_calls(float* out, int n) {
  int i = threadIdx.x;
  Shape* s = i & 1 ? static_cast<Shape*>(new Circle(i)) : static_cast<Shape*>(new Box(i, 2));
  if (i < n) out[i] = s->area() + s->corners();
  delete s;
}
