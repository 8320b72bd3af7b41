// Arrays of another allocator.
#include "array/array_source.h"

#include "base/errors.h"
#include "unit/memory/recorded_memory.h"

#include <doctest/doctest.h>

#include <thread>

using namespace kernwright;

namespace {

/// Hands out views of one block, and counts.
class BlockSource final : public ArraySource {
 public:
  explicit BlockSource(Device& device) : block_(Array::empty(device, {64}, ScalarType::uint8)) {}

  Array make(Device& device, Shape shape, ScalarType type, const Stream&) override {
    ++asked;
    if (shape.empty()) throw OutOfMemory("no scalars", 1, 0, 0, 0);
    own = Array::empty(device, {1}, type);  // of the resource: no source asks itself
    Shape strides = contiguous_strides(shape, scalar_size(type));
    return Array::adopt(device, block_.address(), std::move(shape), std::move(strides), type,
                        block_.owner());
  }

  const Array& block() const { return block_; }
  int asked = 0;
  Array own;

 private:
  Array block_;
};

}  // namespace

TEST_CASE("array source: is asked within its scope, on its thread, and not by itself") {
  const testing::RecordedMemory recorded;
  BlockSource source(recorded.device);
  const auto address = [&] {
    return Array::empty(recorded.device, {2, 3}, ScalarType::float32).address();
  };
  CHECK(address() != source.block().address());
  {
    const ArraySourceScope scope(&source);
    CHECK(address() == source.block().address());
    CHECK(source.own.address() != source.block().address());
    {
      const ArraySourceScope outside(nullptr);
      CHECK(address() != source.block().address());
    }
    CHECK_THROWS_AS(Array::empty(recorded.device, {}, ScalarType::int8), OutOfMemory);
    CHECK_THROWS_AS(Array::empty(recorded.device, {-1}, ScalarType::int8), InvalidArgument);
    std::thread([&] { CHECK(address() != source.block().address()); }).join();
    CHECK(address() == source.block().address());
  }
  CHECK(address() != source.block().address());
  CHECK(source.asked == 3);
}
