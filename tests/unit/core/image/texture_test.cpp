// CUDA arrays, textures and surfaces in C++: values, launches, lifetimes, refusals.
#include "core/image/texture.h"

#include "base/env.h"
#include "base/errors.h"
#include "core/module.h"
#include "sim/device.h"
#include "unit/core/error_text.h"
#include "unit/core/saxpy.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <numeric>
#include <optional>

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// twice(t, s): the surface gets twice the texture's value at a thread's place.
constexpr const char* kTwice = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 t, .param .u64 s)
{
	.reg .f32 %f<6>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [t];
	ld.param.u64 %rd2, [s];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	cvt.rn.f32.u32 %f4, %r1;
	cvt.rn.f32.u32 %f5, %r2;
	tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd1, {%f4, %f5}];
	add.f32 %f0, %f0, %f0;
	shl.b32 %r3, %r1, 2;
	sust.b.2d.b32.trap [%rd2, {%r3, %r2}], {%f0};
	ret;
}
)";

Kernel load_twice(Device& device) {
  KernelSignature signature{.name = "twice", .lowered = "twice", .parameters = {}};
  for (const char* name : {"t", "s"})
    signature.parameters.push_back(
        {.name = name, .type = "unsigned long long", .scalar = ScalarType::uint64});
  for (Parameter& parameter : signature.parameters) parameter.size = 8;
  return {Module::load(device, kTwice), signature};
}

constexpr std::int64_t kShape[] = {4, 8};

std::vector<float> counted() {
  std::vector<float> values(32);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

}  // namespace

TEST_CASE("textures: a launch reads one array and writes another") {
  const Recorded recorded;
  Device& device = recorded.device;
  const Kernel twice = load_twice(device);
  const Stream stream = Stream::create(device);
  CudaArray from(device, kShape, ScalarType::float32);
  const CudaArray to(device, kShape, ScalarType::float32, {.surface = true});
  std::vector<float> values = counted(), back(values.size());
  from.copy_from_host(values.data(), stream);
  // Nobody holds the objects when the launch is done.
  launch(twice, {.grid = {4}, .block = {8}, .stream = stream}, TextureObject(from),
         SurfaceObject(to));
  to.copy_to_host(back.data(), stream);
  for (float& value : values) value *= 2;
  CHECK(back == values);
  CHECK(contains(from.identify(), "a 2-D array of (4, 8) elements, 1 x float32"));
  CHECK(from.shape() == std::vector<std::int64_t>{4, 8});
  CHECK(from.bytes() == 128);
}

TEST_CASE("textures: copies share an object, which keeps its array") {
  const Recorded recorded;
  Device& device = recorded.device;
  std::optional<TextureObject> texture;
  {
    const CudaArray array(device, kShape, ScalarType::uint8, {.channels = 4});
    const TextureObject first(array, {.normalized = true, .normalized_floats = true});
    texture = first;
    CHECK(texture->handle() == first.handle());
  }
  CHECK(texture->options().normalized_floats);
  CHECK(contains(texture->identify(), "texture over a 2-D array of (4, 8) elements, 4 x uint8"));
}

TEST_CASE("textures: what cannot be made says which rule is broken") {
  const Recorded recorded;
  Device& device = recorded.device;
  const auto array = [&](std::vector<std::int64_t> shape, CudaArrayOptions options = {}) {
    return message_of<InvalidArgument>(
        [&] { CudaArray(device, shape, ScalarType::float32, options); });
  };
  CHECK(contains(array({1, 2, 3, 4}), "an array has 1 to 3 axes, not 4"));
  CHECK(contains(array({4, 0}), "axis 1: an extent of 0 is below 1"));
  CHECK(contains(array({4}, {.channels = 3}), "1, 2 or 4 channels, not 3"));
  CHECK(contains(array({5, 4, 4}, {.cubemap = true}), "a cubemap has six faces, not 5"));
  CHECK(contains(array({1 << 20}), "above the device's limit of"));
  CHECK(
      contains(message_of<InvalidArgument>([&] { CudaArray(device, kShape, ScalarType::float64); }),
               "no elements of float64"));
  const CudaArray floats(device, kShape, ScalarType::float32);
  const CudaArray bytes(device, kShape, ScalarType::uint8);
  const auto texture = [&](const CudaArray& over, const TextureOptions& options) {
    return message_of<InvalidArgument>([&] { TextureObject(over, options); });
  };
  CHECK(contains(texture(bytes, {.filter = CU_TR_FILTER_MODE_LINEAR}), "cannot be filtered"));
  CHECK(contains(texture(floats, {.normalized_floats = true}), "8 or 16 bits alone"));
  TextureOptions wrapped;
  wrapped.address[0] = CU_TR_ADDRESS_MODE_WRAP;
  CHECK(contains(texture(floats, wrapped), "wrap and mirror need normalized"));
  CHECK(contains(message_of<InvalidArgument>([&] { SurfaceObject{floats}; }),
                 "was not made for surfaces"));
  const auto memory = [&](const TextureMemory& over) {
    return message_of<InvalidArgument>([&] { TextureObject(device, over); });
  };
  CHECK(contains(memory({.address = 100, .width = 8}), "no multiple of"));
  CHECK(contains(memory({.address = 4096}), "at least one element"));
  CHECK(contains(memory({.address = 4096, .width = 9, .height = 2, .pitch = 32}),
                 "a pitch of 32 bytes is shorter than a row of 36"));
}

TEST_CASE("textures: arguments of another kind or number") {
  const Recorded recorded;
  Device& device = recorded.device;
  const Kernel twice = load_twice(device);
  const CudaArray array(device, kShape, ScalarType::float32);
  const TextureObject texture(array);
  CHECK(contains(message_of<ArgumentError>([&] { launch(twice, {.block = {8}}, texture); }), "2"));
  const Kernel saxpy(Module::load(device, kSaxpyPtx), saxpy_signature());
  const auto as_count = [&] { launch(saxpy, {.block = {8}}, 1.0f, nullptr, nullptr, texture); };
  CHECK(contains(message_of<ArgumentError>(as_count), "the handle of a texture or surface"));
}

TEST_CASE("textures: a fault that only the end of a texture waits for is told by the next wait") {
  const Recorded recorded;
  Device& device = recorded.device;
  if (!device.is_simulated()) return;  // a GPU's context is lost then
  struct Deferred {
    Deferred() { sim::set_schedule_seed(5); }
    ~Deferred() {
      std::optional<std::uint64_t> seed;
      if (env_is_set(Env::sim_seed)) seed = env_number(Env::sim_seed);
      sim::set_schedule_seed(seed);
    }
  } const deferred;
  const Kernel twice = load_twice(device);
  const Stream stream = Stream::create(device);
  const std::int64_t row[] = {8};
  const auto launch_wrongly = [&] {  // a 1-D array for a kernel with a 2-D read
    launch(twice, {.grid = {1}, .block = {1}, .stream = stream},
           TextureObject(CudaArray(device, row, ScalarType::float32)),
           SurfaceObject(CudaArray(device, kShape, ScalarType::float32, {.surface = true})));
  };
  for (int i = 0; i < 2; ++i) {
    launch_wrongly();
    const std::string fault = message_of<DeviceFault>([&] { stream.synchronize(); });
    CHECK(contains(fault, "geometry .2d to a 1-D array of (8) elements"));
    stream.synchronize();
    launch_wrongly();
    CHECK(contains(message_of<DeviceFault>([&] { device.synchronize(); }), "geometry .2d"));
    device.synchronize();
  }
}
