// DLPack: export, import, and refusals.
#include "array/interchange.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/runtime.h"
#include "memory/buffer.h"
#include "unit/array/counted_array.h"
#include "unit/core/error_text.h"
#include "unit/core/test_device.h"
#include "unit/memory/recorded_memory.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <utility>

using namespace kernwright;
using testing::contains;
using testing::make;
using testing::message_of;
using testing::read;

namespace {

/// A GPU: the real one in a run on a GPU, else the fake driver's first.
Device& gpu() {
  testing::test_device();
  return Runtime::get().device("cuda:0");
}

Device& simulated() {
  testing::test_device();
  return Runtime::get().device("sim");
}

/// A tensor of another library. It counts calls of its deleter.
struct Foreign {
  DLManagedTensorVersioned tensor{};
  std::vector<std::int64_t> shape{2, 3};
  std::vector<std::int64_t> strides{3, 1};
  int deleted = 0;

  explicit Foreign(CUdeviceptr address) {
    tensor.version = {1, 0};
    tensor.manager_ctx = this;
    tensor.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->deleted;
    };
    tensor.dl_tensor.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
    tensor.dl_tensor.device = {kDLCUDA, 0};
    tensor.dl_tensor.ndim = 2;
    tensor.dl_tensor.dtype = {kDLInt, 32, 1};
    tensor.dl_tensor.shape = shape.data();
    tensor.dl_tensor.strides = strides.data();
  }
};

}  // namespace

TEST_CASE("dlpack: the declared ABI has the layout that the specification gives it") {
  CHECK(sizeof(DLTensor) == 48);
  CHECK(offsetof(DLTensor, device) == 8);
  CHECK(offsetof(DLTensor, ndim) == 16);
  CHECK(offsetof(DLTensor, dtype) == 20);
  CHECK(offsetof(DLTensor, shape) == 24);
  CHECK(offsetof(DLTensor, strides) == 32);
  CHECK(offsetof(DLTensor, byte_offset) == 40);
  CHECK(offsetof(DLManagedTensor, manager_ctx) == 48);
  CHECK(offsetof(DLManagedTensor, deleter) == 56);
  CHECK(sizeof(DLManagedTensor) == 64);
  CHECK(offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
  CHECK(offsetof(DLManagedTensorVersioned, deleter) == 16);
  CHECK(offsetof(DLManagedTensorVersioned, flags) == 24);
  CHECK(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
  CHECK(sizeof(DLManagedTensorVersioned) == 80);
}

TEST_CASE("dlpack: an export describes the view and holds it until deleted") {
  auto array = std::make_unique<Array>(make(gpu(), {4, 6}).slice(1, 5, 3, -2));
  const std::weak_ptr<void> memory = array->owner();
  DLManagedTensorVersioned* tensor = to_dlpack_versioned(*array);
  const DLTensor& dl = tensor->dl_tensor;
  CHECK(tensor->version.major == 1);
  CHECK(tensor->flags == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(dl.data) + dl.byte_offset == array->address());
  CHECK(dl.device.device_type == kDLCUDA);
  CHECK(dl.device.device_id == 0);
  CHECK(dl.ndim == 2);
  CHECK(dl.dtype.code == kDLInt);
  CHECK(dl.dtype.bits == 32);
  CHECK(dl.dtype.lanes == 1);
  CHECK(Shape(dl.shape, dl.shape + 2) == Shape{4, 3});
  CHECK(Shape(dl.strides, dl.strides + 2) == Shape{6, -2});
  array.reset();
  CHECK_FALSE(memory.expired());
  tensor->deleter(tensor);
  CHECK(memory.expired());
}

TEST_CASE("dlpack: every dtype goes out and comes back as itself") {
  const int codes[] = {6, 0, 0, 0, 0, 1, 1, 1, 1, 2, 4, 2, 2, 10, 12, 5, 5};
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    CAPTURE(scalar_name(type));
    const Array array = Array::empty(gpu(), {3}, type);
    DLManagedTensor* tensor = to_dlpack(array);
    CHECK(tensor->dl_tensor.dtype.code == codes[i]);
    CHECK(tensor->dl_tensor.dtype.bits == 8 * scalar_size(type));
    const Array back = from_dlpack(tensor);
    CHECK(back.type() == type);
    CHECK(back.address() == array.address());
    CHECK(back.shape() == array.shape());
    CHECK(back.strides() == array.strides());
  }
}

TEST_CASE("dlpack: an import holds the tensor until the last view is gone") {
  const Array base = make(gpu(), {2, 3});
  Foreign foreign(base.address());
  {
    Array view;
    {
      const Array array = from_dlpack(&foreign.tensor);
      CHECK(array.shape() == Shape{2, 3});
      CHECK_FALSE(array.read_only());
      view = array.transpose();
    }
    CHECK(foreign.deleted == 0);
    CHECK(read(view) == std::vector{0, 3, 1, 4, 2, 5});
  }
  CHECK(foreign.deleted == 1);
}

TEST_CASE("dlpack: offsets, missing strides, flags, and tensors without a deleter") {
  const Array base = make(gpu(), {3, 3});
  Foreign foreign(base.address());
  foreign.tensor.dl_tensor.byte_offset = 12;
  foreign.tensor.dl_tensor.strides = nullptr;
  foreign.tensor.flags = kDLPackReadOnly;
  foreign.tensor.deleter = nullptr;
  const Array array = from_dlpack(&foreign.tensor);
  CHECK(array.read_only());
  CHECK(array.is_contiguous());
  CHECK(read(array) == std::vector{3, 4, 5, 6, 7, 8});
  CHECK_THROWS_AS(to_dlpack(array), InvalidArgument);
  DLManagedTensorVersioned* out = to_dlpack_versioned(array, DLPackReceiver::anybody, true);
  CHECK(out->flags == (kDLPackReadOnly | kDLPackIsCopied));
  out->deleter(out);
}

TEST_CASE("dlpack: what cannot be taken over stays the caller's") {
  const Array base = make(gpu(), {2, 3});
  const auto refused = [&](auto&& change) {
    Foreign foreign(base.address());
    change(foreign.tensor);
    const std::string text = message_of<Error>([&] { (void)from_dlpack(&foreign.tensor); });
    CHECK(foreign.deleted == 0);
    return text;
  };
  using Tensor = DLManagedTensorVersioned;
  CHECK(contains(refused([](Tensor& t) { t.version.major = 2; }), "version 2.0"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.device.device_type = kDLCPU; }), "asarray"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.device.device_type = kDLCUDAHost; }), "host"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.device = {kDLExtDev, 0}; }), "extension"));
  CHECK(contains(
      refused([](Tensor& t) { t.dl_tensor.device.device_type = static_cast<DLDeviceType>(10); }),
      "device type 10"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.device.device_id = 99; }), "cuda:99"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.dtype.lanes = 4; }), "4 lanes"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.dtype = {kDLInt, 4, 1}; }), "4 bits"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.dtype = {8, 8, 1}; }), "code 8"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.ndim = -1; }), "-1 dimensions"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.ndim = 1000; }), "1000 dimensions"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.shape = nullptr; }), "dimensions"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.shape[0] = -2; }), "negative"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.strides[0] = INT64_MAX; }), "64 bits"));
  CHECK(contains(refused([](Tensor& t) { t.dl_tensor.data = nullptr; }), "address 0"));
}

TEST_CASE("dlpack: memory of the simulated device goes to ourselves only") {
  const testing::RecordedMemory recorded;
  const Array array = make(simulated(), {2, 2});
  CHECK(dlpack_device(simulated()).device_type == kDLExtDev);
  CHECK(contains(message_of<InvalidArgument>([&] { to_dlpack(array); }), "numpy()"));
  CHECK_THROWS_AS(to_dlpack_versioned(array), InvalidArgument);
  const Array back = from_dlpack(to_dlpack_versioned(array, DLPackReceiver::ourselves));
  CHECK(&back.device() == &simulated());
  CHECK(read(back) == read(array));
}

TEST_CASE("dlpack: strides that are no whole elements cannot be exported") {
  const Array base = make(gpu(), {8});
  const auto adopt = [&](Shape shape, CUdeviceptr past) {
    return Array::adopt(gpu(), base.address() + past, std::move(shape), {6}, ScalarType::int32,
                        base.owner());
  };
  CHECK(contains(message_of<InvalidArgument>([&] { adopt({2}, 0); }), "multiples of 4 bytes"));
  CHECK(contains(message_of<InvalidArgument>([&] { adopt({1}, 0); }), "multiples of 4 bytes"));
  const Array odd = adopt({0}, 2);
  CHECK(contains(message_of<InvalidArgument>([&] { to_dlpack(odd); }), "copy the array"));
}
