// Arrays and their views, against a plain list of element numbers with NumPy's rules.
#include "array/array.h"

#include "base/errors.h"
#include "core/device.h"
#include "memory/buffer.h"
#include "memory/pool/pool_resource.h"
#include "unit/array/counted_array.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"
#include "unit/core/test_device.h"
#include "unit/memory/recorded_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

using namespace kernwright;
using testing::contains;
using testing::make;
using testing::message_of;
using testing::read;

namespace {

/// A view as NumPy defines it: for each element, row-major, its number in the base array.
struct Model {
  Shape shape;
  std::vector<int> elements;
};

Model make_model(const Shape& shape) {
  Model model{shape, std::vector<int>(static_cast<std::size_t>(element_count(shape)))};
  std::iota(model.elements.begin(), model.elements.end(), 0);
  return model;
}

/// The model of a view with the element map(index) of `from` at `index`.
template <typename Map>
Model remap(const Model& from, const Shape& shape, Map map) {
  Model result{shape, {}};
  const std::int64_t count = element_count(shape);
  Shape index(shape.size(), 0);
  for (std::int64_t n = 0; n < count; ++n) {
    const Shape source = map(index);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < source.size(); ++i) at = at * from.shape[i] + source[i];
    result.elements.push_back(from.elements[static_cast<std::size_t>(at)]);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

/// One random view of `array` and of its model.
void step(Array& array, Model& model, std::mt19937& random) {
  const int ndim = array.ndim();
  const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  switch (random() % 5) {
    case 0: {
      std::vector<int> axes(static_cast<std::size_t>(ndim));
      std::iota(axes.begin(), axes.end(), 0);
      std::shuffle(axes.begin(), axes.end(), random);
      Shape shape;
      for (const int axis : axes) shape.push_back(model.shape[axis]);
      model = remap(model, shape, [&](const Shape& index) {
        Shape source(index.size());
        for (std::size_t i = 0; i < axes.size(); ++i) source[axes[i]] = index[i];
        return source;
      });
      array = array.transpose(axes);
      return;
    }
    case 1: {
      if (ndim == 0) return;
      const int axis = static_cast<int>(pick(ndim));
      const std::int64_t extent = model.shape[axis];
      if (extent == 0) return;
      const std::int64_t start = pick(extent);
      const std::int64_t by = (1 + pick(3)) * (random() % 2 == 0 ? 1 : -1);
      const std::int64_t room = by > 0 ? (extent - 1 - start) / by : start / -by;
      const std::int64_t count = pick(room + 2);
      Shape shape = model.shape;
      shape[axis] = count;
      model = remap(model, shape, [&](Shape index) {
        index[axis] = start + index[axis] * by;
        return index;
      });
      array = array.slice(axis - (random() % 2 == 0 ? ndim : 0), start, count, by);
      return;
    }
    case 2: {
      if (ndim == 0) return;
      const int axis = static_cast<int>(pick(ndim));
      if (model.shape[axis] == 0) return;
      const std::int64_t at = pick(model.shape[axis]);
      Shape shape = model.shape;
      shape.erase(shape.begin() + axis);
      const std::int64_t extent = model.shape[axis];
      model = remap(model, shape, [&](Shape index) {
        index.insert(index.begin() + axis, at);
        return index;
      });
      array = array.drop_axis(axis, random() % 2 == 0 ? at : at - extent);
      return;
    }
    case 3: {
      if (ndim > 4) return;
      const int axis = static_cast<int>(pick(ndim + 1));
      model.shape.insert(model.shape.begin() + axis, 1);
      array = array.insert_axis(axis);
      return;
    }
    default: {
      // Reshape to one axis, if a view can do it: the elements keep their order.
      Shape to = random() % 2 == 0 ? Shape{-1} : Shape{array.size(), 1};
      try {
        array = array.reshape(to);
      } catch (const InvalidArgument& error) {
        if (!array.is_contiguous()) {
          if (array.size() != 0) CHECK(contains(error.what(), "copy"));
          return;
        }
        throw;
      }
      to[0] = array.size();
      model.shape = to;
      return;
    }
  }
}

}  // namespace

TEST_CASE("array: memory by shape and dtype") {
  const testing::RecordedMemory recorded;
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3}, Shape{2, 3, 4, 1, 2}, Shape{3, 0}}) {
      const Array array = Array::empty(recorded.device, shape, type);
      CHECK(array.shape() == shape);
      CHECK(array.ndim() == static_cast<int>(shape.size()));
      CHECK(array.size() == element_count(shape));
      CHECK(array.nbytes() == static_cast<std::size_t>(array.size()) * scalar_size(type));
      CHECK(array.is_contiguous());
      CHECK(array.type() == type);
      CHECK(&array.device() == &recorded.device);
      CHECK((array.address() != 0) == (array.size() != 0));
    }
  }
  CHECK_THROWS_AS(Array::empty(recorded.device, {-1}, ScalarType::int8), InvalidArgument);
  CHECK_THROWS_AS(Array::empty(recorded.device, {std::int64_t{1} << 62, 4}, ScalarType::int8),
                  InvalidArgument);
  CHECK_THROWS_AS(Array::empty(recorded.device, {std::int64_t{1} << 61}, ScalarType::float64),
                  InvalidArgument);
}

TEST_CASE("array: a round trip keeps every byte, for every dtype") {
  const testing::RecordedMemory recorded;
  std::mt19937 random(3);
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{5, 7}, Shape{0}, Shape{2, 3, 4, 5}}) {
      std::string data(static_cast<std::size_t>(element_count(shape)) * scalar_size(type), '\0');
      for (char& byte : data) byte = static_cast<char>(random());
      Array array = Array::from_host(recorded.device, data.data(), shape, type);
      std::string back(data.size(), 'x');
      array.to_host(back.data());
      CHECK(back == data);
      for (char& byte : data) byte = static_cast<char>(random());
      const Stream stream = Stream::create(recorded.device);
      array.assign_from_host(data.data(), stream);
      array.to_host(back.data(), stream);
      CHECK(back == data);
    }
  }
}

TEST_CASE("array: random chains of views hold what NumPy's rules say") {
  const testing::RecordedMemory recorded;
  std::mt19937 random(42);
  for (int round = 0; round < 400; ++round) {
    Shape shape;
    for (std::size_t i = 0, rank = random() % 5; i < rank; ++i) shape.push_back(random() % 6);
    Model model = make_model(shape);
    Array array = make(recorded.device, shape);
    for (int i = 0; i < 6; ++i) {
      step(array, model, random);
      REQUIRE(array.shape() == model.shape);
      REQUIRE(read(array) == model.elements);
    }
  }
}

TEST_CASE("array: views share the memory and keep it alive") {
  Device& device = testing::fresh_device();
  Array view;
  {
    const Array base = make(device, {4, 6});
    view = base.slice(1, 5, 3, -2).transpose();
    CHECK(view.owner() == base.owner());
    CHECK(view.address() == base.address() + 5 * 4);
    CHECK(view.strides() == Shape{-8, 24});
  }
  CHECK(testing::FakeDriver::get().live("memory") == 1);
  CHECK(read(view) == std::vector{5, 11, 17, 23, 3, 9, 15, 21, 1, 7, 13, 19});
  view = {};
  CHECK(default_resource(device)->stats().blocks == 0);
}

TEST_CASE("array: reshape refuses what needs a copy, with both shapes") {
  Device& device = testing::fresh_device();
  const Array array = make(device, {3, 4});
  CHECK(array.reshape({2, -1}).shape() == Shape{2, 6});
  CHECK(array.reshape({12}).address() == array.address());
  const std::string text =
      message_of<InvalidArgument>([&] { (void)array.transpose().reshape({12}); });
  CHECK(contains(text, "cannot reshape (4, 3) with strides (4, 16) into (12,) without a copy"));
  CHECK_THROWS_AS((void)array.reshape({5}), InvalidArgument);
  CHECK(array.slice(0, 0, 3, 1).reshape({12}).size() == 12);
  CHECK(array.slice(0, 0, 0, 1).reshape({0, 7}).shape() == Shape{0, 7});
  CHECK(make(device, {}).reshape({1, 1}).shape() == Shape{1, 1});
}

TEST_CASE("array: a view of another element type shares memory and owner") {
  const auto owner = std::make_shared<int>(1);
  const Array x =
      Array::adopt(testing::test_device(), 4096, {2, 6}, {64, 4}, ScalarType::float32, owner, true);
  const Array bytes = x.view(ScalarType::uint8);
  CHECK(bytes.address() == 4096);
  CHECK(bytes.shape() == Shape{2, 24});
  CHECK(bytes.strides() == Shape{64, 1});
  CHECK(bytes.read_only());
  CHECK(bytes.owner() == x.owner());
  CHECK_FALSE(bytes.is_contiguous());
  const Array wide = bytes.view(ScalarType::complex64);
  CHECK(wide.shape() == Shape{2, 3});
  CHECK(wide.strides() == Shape{64, 8});
  CHECK(wide.view(ScalarType::int64).shape() == Shape{2, 3});
  CHECK(x.view(ScalarType::float32).strides() == x.strides());
  CHECK(x.slice(1, 0, 0, 1).view(ScalarType::float64).shape() == Shape{2, 0});
}

TEST_CASE("array: a view of another element type is refused where elements would be cut") {
  const auto make_at = [](CUdeviceptr address, Shape shape, Shape strides, ScalarType type) {
    return Array::adopt(testing::test_device(), address, std::move(shape), std::move(strides), type,
                        nullptr);
  };
  const Array odd = make_at(4096, {3}, {4}, ScalarType::float32);
  CHECK(contains(message_of<InvalidArgument>([&] { odd.view(ScalarType::float64); }),
                 "no whole number of 8 bytes"));
  const Array gaps = make_at(4096, {4}, {8}, ScalarType::float32);
  CHECK(contains(message_of<InvalidArgument>([&] { gaps.view(ScalarType::uint8); }), "gaps"));
  const Array none = make_at(4096, {}, {}, ScalarType::float32);
  CHECK(contains(message_of<InvalidArgument>([&] { none.view(ScalarType::uint8); }), "reshape(1)"));
  CHECK(none.view(ScalarType::int32).ndim() == 0);
  const Array crooked = make_at(4097, {8}, {1}, ScalarType::uint8);
  CHECK(contains(message_of<InvalidArgument>([&] { crooked.view(ScalarType::float32); }),
                 "multiples of 4 bytes"));
  CHECK(crooked.view(ScalarType::int8).size() == 8);
  const Array rows = make_at(4096, {2, 4}, {6, 1}, ScalarType::uint8);
  CHECK(contains(message_of<InvalidArgument>([&] { rows.view(ScalarType::float32); }),
                 "multiples of 4 bytes"));
  CHECK(rows.view(ScalarType::uint16).shape() == Shape{2, 2});
}

TEST_CASE("array: slices and axes outside the array are refused") {
  Device& device = testing::fresh_device();
  const Array array = make(device, {3, 4});
  CHECK_THROWS_AS((void)array.slice(0, 3, 1, 1), InvalidArgument);
  CHECK_THROWS_AS((void)array.slice(0, -1, 1, 1), InvalidArgument);
  CHECK_THROWS_AS((void)array.slice(0, 0, 4, 1), InvalidArgument);
  CHECK_THROWS_AS((void)array.slice(0, 0, 2, -1), InvalidArgument);
  CHECK_THROWS_AS((void)array.slice(0, 0, 2, 0), InvalidArgument);
  CHECK_THROWS_AS((void)array.slice(0, 0, -1, 1), InvalidArgument);
  CHECK_THROWS_AS((void)array.slice(0, 1, std::int64_t{1} << 62, std::int64_t{1} << 62),
                  InvalidArgument);
  CHECK_THROWS_AS((void)array.slice(2, 0, 1, 1), InvalidArgument);
  CHECK(array.slice(0, 2, 1, std::numeric_limits<std::int64_t>::min()).size() == 4);
  CHECK(array.slice(0, 17, 0, -5).size() == 0);
  CHECK_THROWS_AS((void)array.drop_axis(0, 3), InvalidArgument);
  CHECK_THROWS_AS((void)array.drop_axis(0, -4), InvalidArgument);
  CHECK_THROWS_AS((void)array.insert_axis(4), InvalidArgument);
  CHECK(array.insert_axis(-1).shape() == Shape{3, 4, 1});
  CHECK_THROWS_AS((void)array.transpose(std::array{0}), InvalidArgument);
  CHECK_THROWS_AS((void)array.transpose(std::array{0, 0}), InvalidArgument);
  CHECK_THROWS_AS((void)array.transpose(std::array{0, 2}), InvalidArgument);
  CHECK(array.transpose(std::array{-1, 0}).shape() == Shape{4, 3});
}

TEST_CASE("array: adopted memory is held by its owner, and checked") {
  Device& device = testing::fresh_device();
  const Array base = make(device, {6});
  auto owner = std::make_shared<int>(1);
  {
    const Array array = Array::adopt(device, base.address() + 20, {2, 3}, {-12, -4},
                                     ScalarType::int32, owner, true);
    CHECK(owner.use_count() == 2);
    CHECK(array.read_only());
    CHECK(array.slice(0, 0, 1, 1).read_only());
    CHECK(read(array) == std::vector{5, 4, 3, 2, 1, 0});
    array.use_on(Stream::create(device));
    CHECK(testing::FakeDriver::get().calls("cuEventRecord") == 0);
  }
  CHECK(owner.use_count() == 1);
  const auto adopt = [&](CUdeviceptr address, Shape shape, Shape strides) {
    return Array::adopt(device, address, std::move(shape), std::move(strides), ScalarType::int32,
                        nullptr);
  };
  CHECK_THROWS_AS(adopt(4096, {2}, {}), InvalidArgument);
  CHECK_THROWS_AS(adopt(0, {2}, {4}), InvalidArgument);
  CHECK_THROWS_AS(adopt(4096, {3}, {std::numeric_limits<std::int64_t>::max()}), InvalidArgument);
  CHECK_THROWS_AS(adopt(4096, {-3}, {4}), InvalidArgument);
  CHECK(adopt(0, {0}, {4}).size() == 0);
}

TEST_CASE("array: writing from the host needs a contiguous array that may be written") {
  Device& device = testing::fresh_device();
  Array array = make(device, {3, 4});
  const std::vector<int> data(12, 9);
  Array columns = array.transpose();
  CHECK(contains(message_of<InvalidArgument>([&] { columns.assign_from_host(data.data()); }),
                 "not contiguous"));
  Array frozen = Array::adopt(device, array.address(), {12}, {4}, ScalarType::int32, nullptr, true);
  CHECK(contains(message_of<InvalidArgument>([&] { frozen.assign_from_host(data.data()); }),
                 "read-only"));
  Array row = array.drop_axis(0, 1);
  row.assign_from_host(data.data());
  CHECK(read(array) == std::vector{0, 1, 2, 3, 9, 9, 9, 9, 8, 9, 10, 11});
}

TEST_CASE("array: says what it is, also when it is nothing") {
  Device& device = testing::fresh_device();
  CHECK(make(device, {3, 4}).identify() == "int32 array of shape (3, 4) on cuda:0");
  const Array nothing;
  CHECK(contains(nothing.identify(), "no device"));
  CHECK_THROWS_AS((void)nothing.device(), InvalidArgument);
}

TEST_CASE("array: use on another stream reaches the buffer") {
  Device& device = testing::fresh_device();
  const Stream other = Stream::create(device);
  {
    const Array view = make(device, {8}).slice(0, 2, 3, 1);
    view.use_on(other);
  }
  CHECK(testing::FakeDriver::get().calls("cuStreamWaitEvent") == 1);
  {
    const Array view = make(device, {8, 1}).broadcast({2, 8, 4});
    view.use_on(other);
  }
  CHECK(testing::FakeDriver::get().calls("cuStreamWaitEvent") == 2);
}

TEST_CASE("array: broadcasting stretches axes of extent 1 and adds some in front") {
  Device& device = testing::fresh_device();
  const Array array = make(device, {2, 1, 3});
  const Array view = array.broadcast({4, 2, 5, 3});
  CHECK(view.shape() == Shape{4, 2, 5, 3});
  CHECK(view.strides() == Shape{0, 12, 0, 4});
  CHECK(view.owner() == array.owner());
  CHECK(make(device, {1}).broadcast({0, 2}).size() == 0);
  CHECK(array.broadcast(array.shape()).strides() == array.strides());
  CHECK(contains(message_of<InvalidArgument>([&] {
                   array.broadcast({2, 1, 4});
                 }),
                 "(2, 1, 3) does not broadcast to shape (2, 1, 4)"));
  CHECK_THROWS_AS(array.broadcast({1, 3}), InvalidArgument);
}

TEST_CASE("array: frees at once the memory that it alone holds") {
  Device& device = testing::fresh_device();
  const auto pool = std::make_shared<PoolResource>(std::make_shared<DeviceResource>(device));
  const auto before = set_default_resource(device, pool);
  Array::empty(device, {64}, ScalarType::float32);  // the pool knows the stream from now on
  {
    Array base = Array::empty(device, {64}, ScalarType::float32);
    {
      Array part = base.slice(0, 0, 8, 1);
      CHECK_FALSE(base.try_release());
      CHECK_FALSE(part.try_release());
    }
    CHECK(pool->stats().used != 0);
    CHECK(base.try_release());
    CHECK(pool->stats().used == 0);
  }
  CHECK(pool->stats().frees == 2);
  const auto owner = std::make_shared<Buffer>(pool, 256, Stream());
  Array over = Array::over(owner, *owner, {64}, ScalarType::float32);
  CHECK_FALSE(over.try_release());
  Array foreign = Array::adopt(device, owner->address(), {64}, {4}, ScalarType::float32, nullptr);
  CHECK_FALSE(foreign.try_release());
  CHECK_FALSE(Array().try_release());
  set_default_resource(device, before);
}
