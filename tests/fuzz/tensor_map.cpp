// Tensor maps: what the check accepts survives the way through a descriptor, and what is read from
// any 128 bytes is a map that the check accepts.
#include "sim/tensor_map.h"
#include "fuzz/targets.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace kernwright::fuzz {
namespace {

/// Takes numbers off the front; zeros when too little is left.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T take() {
    T value{};
    const std::size_t count = std::min(sizeof value, rest_.size());
    std::memcpy(&value, rest_.data(), count);
    rest_.remove_prefix(count);
    return value;
  }

 private:
  std::string_view rest_;
};

/// Any map, with zeros where nothing is read.
TensorMapParameters map_of(std::string_view bytes) {
  FieldReader reader(bytes);
  TensorMapParameters map;
  map.rank = reader.take<std::int8_t>();
  map.type = reader.take<std::int8_t>();
  map.interleave = reader.take<std::int8_t>();
  map.swizzle = reader.take<std::int8_t>();
  map.l2_promotion = reader.take<std::int8_t>();
  map.fills_nan = reader.take<std::uint8_t>() % 2 != 0;
  map.address = reader.take<std::uint64_t>();
  const int used = std::clamp(map.rank, 0, kMaxTensorRank);
  for (std::size_t i = 0; i < static_cast<std::size_t>(used); ++i) {
    map.extent[i] = reader.take<std::uint64_t>();
    map.box[i] = reader.take<std::uint32_t>();
    map.step[i] = reader.take<std::uint32_t>();
    if (i > 0) map.stride[i] = reader.take<std::uint64_t>();
  }
  map.im2col = reader.take<std::uint8_t>() % 2 != 0;
  if (!map.im2col) return map;
  map.pixels = reader.take<std::uint32_t>();
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(used); ++i) {
    map.box[i + 1] = map.box[static_cast<std::size_t>(used) - 1] = 0;
    map.lower[i] = reader.take<std::int16_t>();
    map.upper[i] = reader.take<std::int16_t>();
  }
  return map;
}

void require_survival(const TensorMapParameters& map) {
  const auto descriptor = sim::encode_tensor_map(map);
  if (sim::decode_tensor_map(descriptor.data()) != map)
    throw std::logic_error("a tensor map changed on its way through a descriptor");
}

}  // namespace

void tensor_map(std::string_view bytes) {
  const TensorMapParameters map = map_of(bytes);
  if (check_tensor_map(map).empty() && map.address != 0) require_survival(map);
  std::array<std::byte, kTensorMapBytes> descriptor{};
  std::memcpy(descriptor.data(), bytes.data(), std::min(bytes.size(), descriptor.size()));
  const auto read = sim::decode_tensor_map(descriptor.data());
  if (!read) return;
  if (!check_tensor_map(*read).empty()) throw std::logic_error("a wrong map was read");
  require_survival(*read);
}

}  // namespace kernwright::fuzz
