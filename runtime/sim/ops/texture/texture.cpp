// tex, tld4, txq and suq: one sampler for all geometries and formats, lane after lane.
//
// The sampling follows the CUDA Programming Guide, "Texture Fetching"; the bits of a filtered value
// are those of a sum in double, rounded once.
#include "sim/numeric/half.h"
#include "sim/ops/texture/texture_lanes.h"
#include "sim/ptx/isa_table.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Geometry;
using ptx::Handler;

// Op::flags beside the geometry.
constexpr std::uint32_t kFloatCoordinates = 1 << 3;
constexpr std::uint32_t kHalves = 1 << 4;     ///< f16
constexpr std::uint32_t kPairs = 1 << 5;      ///< f16x2
constexpr std::uint32_t kGathers = 1 << 6;    ///< tld4
constexpr std::uint32_t kPredicate = 1 << 7;  ///< behind the values: whether memory was there
constexpr int kComponentShift = 8;
constexpr int kQueryShift = 3;                   ///< txq, suq
constexpr std::uint32_t kSurfaceQuery = 1 << 7;  ///< suq

/// Four channels as register bits.
using Texel = std::array<std::uint32_t, 4>;

std::uint32_t texel_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

/// An integer channel: as it is, or as a float of -1 or 0 to 1.
template <typename T>
std::uint32_t integer_channel(const std::byte* from, bool promotes) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if (!promotes) return static_cast<std::uint32_t>(std::int32_t{value});
  const float largest = std::numeric_limits<T>::max();
  return texel_bits(std::max(static_cast<float>(value) / largest, -1.0f));
}

std::uint32_t read_channel(const std::byte* from, CUarray_format format, bool promotes) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: return integer_channel<std::uint8_t>(from, promotes);
    case CU_AD_FORMAT_SIGNED_INT8: return integer_channel<std::int8_t>(from, promotes);
    case CU_AD_FORMAT_UNSIGNED_INT16: return integer_channel<std::uint16_t>(from, promotes);
    case CU_AD_FORMAT_SIGNED_INT16: return integer_channel<std::int16_t>(from, promotes);
    case CU_AD_FORMAT_HALF: {
      std::uint16_t half;
      std::memcpy(&half, from, sizeof half);
      return texel_bits(numeric::f16_to_f32(half));
    }
    default: {
      std::uint32_t word;
      std::memcpy(&word, from, sizeof word);
      return word;
    }
  }
}

/// The texels of a value along one axis: `index` and, with `weight`, the next.
struct Step {
  std::int64_t index = 0;
  double weight = 0;
};

/// Coordinates beyond it are as good as infinite.
constexpr double kFar = 1e12;

double finite(double x) { return x != x ? 0 : std::clamp(x, -kFar, kFar); }

/// Texel centres lie at 0.5, 1.5, ...; places between them have 8 bits of fraction.
Step filtered(double x) {
  const double fixed = std::floor((x - 0.5) * 256 + 0.5);
  const double index = std::floor(fixed / 256);
  return {static_cast<std::int64_t>(index), (fixed - index * 256) / 256};
}

/// The index within 0 to `extent` - 1 used for `index`, or -1 for the border.
std::int64_t resolve(std::int64_t index, std::int64_t extent, CUaddress_mode mode) {
  if (index >= 0 && index < extent) return index;
  const auto modulo = [&](std::int64_t period) { return (index % period + period) % period; };
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP: return modulo(extent);
    case CU_TR_ADDRESS_MODE_MIRROR: {
      const std::int64_t place = modulo(2 * extent);
      return place < extent ? place : 2 * extent - 1 - place;
    }
    case CU_TR_ADDRESS_MODE_BORDER: return -1;
    default: return std::clamp<std::int64_t>(index, 0, extent - 1);
  }
}

/// A place on the cube: the face hit by the direction and the place on it, 0 to 1.
struct FacePlace {
  std::int64_t face;
  double s, t;
};

FacePlace select_face(double x, double y, double z) {
  const double ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  double m, s, t;
  std::int64_t face;
  if (ax >= ay && ax >= az) {
    face = x < 0 ? 1 : 0;
    m = ax, s = x < 0 ? z : -z, t = -y;
  } else if (ay >= az) {
    face = y < 0 ? 3 : 2;
    m = ay, s = x, t = y < 0 ? -z : z;
  } else {
    face = z < 0 ? 5 : 4;
    m = az, s = z < 0 ? -x : x, t = -y;
  }
  return {face, (s / m + 1) / 2, (t / m + 1) / 2};
}

/// One lane's access to one texture.
class Fetch {
 public:
  Fetch(const Op* op, Warp& warp, int lane, const TextureObject& object)
      : op_(op),
        warp_(warp),
        lane_(lane),
        source_(object.source),
        sampler_(object.sampler),
        shape_(op_geometry(op)),
        axes_(count_axes(shape_)) {}

  /// False after a finding.
  bool run(Texel& result) {
    if ((op_->flags & kFloatCoordinates) == 0) return fetch(result);
    if (source_.linear)
      return refuse("a texture over linear memory has integer coordinates alone (tex1Dfetch)");
    place();
    const bool gathers = (op_->flags & kGathers) != 0;
    if (gathers && !source_.gather)
      return refuse("texture gather of " + source_.name +
                    ", which was not made for it (CUDA_ARRAY3D_TEXTURE_GATHER)");
    return gathers ? gather(result) : sampler_.filters ? filter(result) : point(result);
  }

 private:
  bool refuse(std::string message) {
    texture_fault(op_, warp_, lane_, FaultKind::bounds, std::move(message));
    return false;
  }

  template <typename T>
  T coordinate(int i) const {
    return list_element<T>(warp_, op_->b, i, lane_);
  }

  std::int64_t offset(int axis) const {
    return op_->sources == 3 ? list_element<std::int32_t>(warp_, op_->c, axis, lane_) : 0;
  }

  std::int64_t clamped_layer(std::uint32_t layers) const {
    return std::clamp<std::int64_t>(coordinate<std::int32_t>(0), 0, std::int64_t{layers} - 1);
  }

  /// By the index of a texel, whatever the sampler says; nothing is zero outside.
  bool fetch(Texel& result) {
    const int first = has_layers(shape_) ? 1 : 0;
    if (first == 1) layer_ = clamped_layer(source_.layers);
    std::array<std::int64_t, 3> index{};
    for (int i = 0; i < axes_; ++i) {
      index[i] = coordinate<std::int32_t>(first + i) + offset(i);
      if (index[i] >= 0 && index[i] < extent(i)) continue;
      result = {};
      return true;
    }
    return read(index, result);
  }

  std::int64_t extent(int axis) const { return source_.extent[static_cast<unsigned>(axis)]; }

  /// Computes the place of the float coordinates, in texels.
  void place() {
    const int first = has_layers(shape_) ? 1 : 0;
    std::array<double, 3> x{};
    const bool cube = shape_ == Geometry::cube || shape_ == Geometry::acube;
    for (int i = 0; i < (cube ? 3 : axes_); ++i) x[i] = double{coordinate<float>(first + i)};
    if (first == 1) layer_ = clamped_layer(cube ? source_.layers / 6 : source_.layers);
    if (cube) {
      const FacePlace at = select_face(x[0], x[1], x[2]);
      layer_ = layer_ * 6 + at.face;
      x = {at.s, at.t, 0};
    }
    for (int i = 0; i < axes_; ++i) {
      const double scale = sampler_.normalized || cube ? static_cast<double>(extent(i)) : 1.0;
      const double texels = finite(x[i] * scale);
      const bool between = sampler_.filters || (op_->flags & kGathers) != 0;
      steps_[i] =
          between ? filtered(texels) : Step{static_cast<std::int64_t>(std::floor(texels)), 0};
      steps_[i].index += offset(i);
    }
    repeats_ = sampler_.normalized || cube;
  }

  bool point(Texel& result) { return corner(0, result); }

  /// The texel at the corner of the cell, a bit for each axis; or the border.
  bool corner(unsigned which, Texel& result) {
    std::array<std::int64_t, 3> index{};
    for (int i = 0; i < axes_; ++i) {
      CUaddress_mode mode = sampler_.address[static_cast<unsigned>(i)];
      // Without normalized coordinates nothing repeats.
      if (!repeats_ && mode != CU_TR_ADDRESS_MODE_BORDER) mode = CU_TR_ADDRESS_MODE_CLAMP;
      index[i] = resolve(steps_[i].index + (which >> i & 1), extent(i), mode);
      if (index[i] >= 0) continue;
      result = {};
      for (unsigned c = 0; c < source_.channels; ++c) result[c] = texel_bits(sampler_.border[c]);
      return true;
    }
    return read(index, result);
  }

  /// Texels without weight are not read, so that a NaN there changes nothing.
  bool filter(Texel& result) {
    std::array<double, 4> sum{};
    for (unsigned which = 0; which < 1u << axes_; ++which) {
      double weight = 1;
      for (int i = 0; i < axes_; ++i)
        weight *= (which >> i & 1) != 0 ? steps_[i].weight : 1 - steps_[i].weight;
      if (weight == 0) continue;
      Texel texel;
      if (!corner(which, texel)) return false;
      for (unsigned c = 0; c < 4; ++c) sum[c] += weight * double{std::bit_cast<float>(texel[c])};
    }
    for (unsigned c = 0; c < 4; ++c) result[c] = texel_bits(static_cast<float>(sum[c]));
    return true;
  }

  /// One channel of the four texels, against the clock from the lower left.
  bool gather(Texel& result) {
    constexpr std::array<unsigned, 4> kOrder{2, 3, 1, 0};
    for (unsigned i = 0; i < 4; ++i) {
      Texel texel;
      if (!corner(kOrder[i], texel)) return false;
      result[i] = texel[op_->flags >> kComponentShift & 3];
    }
    return true;
  }

  /// Channels missing in the format read as 0, as on an H100.
  bool read(const std::array<std::int64_t, 3>& index, Texel& result) {
    const std::uint64_t address = source_.address +
                                  static_cast<std::uint64_t>(layer_ + index[2]) * source_.slice +
                                  static_cast<std::uint64_t>(index[1]) * source_.pitch +
                                  static_cast<std::uint64_t>(index[0]) * source_.bytes;
    const std::byte* const from =
        reach(op_, warp_, lane_, AccessKind::read, address, source_.bytes);
    if (from == nullptr) return false;
    result = {};
    const std::uint32_t step = source_.bytes / source_.channels;
    for (std::uint32_t c = 0; c < source_.channels; ++c)
      result[c] = read_channel(from + c * step, source_.format, sampler_.promotes);
    return true;
  }

  const Op* op_;
  Warp& warp_;
  const int lane_;
  const TextureSource& source_;
  const TextureSampler& sampler_;
  const Geometry shape_;
  const int axes_;
  std::int64_t layer_ = 0;
  std::array<Step, 3> steps_{};
  bool repeats_ = false;
};

std::uint16_t round_half(std::uint32_t bits) {
  return numeric::f32_to_f16(std::bit_cast<float>(bits));
}

void write(const Op* op, const Warp& warp, int lane, const Texel& value) {
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t bits = value[static_cast<unsigned>(i)];
    if ((op->flags & kPairs) != 0) {
      auto& word = list_element<std::uint32_t>(warp, op->d, i / 2, lane);
      const std::uint32_t half = round_half(bits);
      word = i % 2 == 0 ? half : word | half << 16;
    } else if ((op->flags & kHalves) != 0) {
      list_element<std::uint16_t>(warp, op->d, i, lane) = round_half(bits);
    } else {
      list_element<std::uint32_t>(warp, op->d, i, lane) = bits;
    }
  }
}

const Op* sample(const Op* op, Warp& warp) {
  LaneTexture textures(op, warp, false, op_geometry(op));
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const TextureObject* const object = textures.at(lane);
    Texel value;
    warp.charge(kTexelCost);
    if (object == nullptr || !Fetch(op, warp, lane, *object).run(value)) return nullptr;
    write(op, warp, lane, value);
  }
  if ((op->flags & kPredicate) != 0) {
    const unsigned values = (op->flags & kPairs) != 0 ? 2 : 4;
    write_predicate<true>(warp, warp.program->lists[op->d + values], kAllLanes);
  }
  return op + 1;
}

/// 0 for a missing axis.
std::uint32_t answer(const TextureSource& source, std::uint32_t query) {
  switch (query) {
    case 0:
    case 1:
    case 2: return static_cast<int>(query) < count_axes(source.shape) ? source.extent[query] : 0;
    case 3:
      return source.shape == Geometry::acube ? source.layers / 6
             : has_layers(source.shape)      ? source.layers
                                             : 0;
    default: return 1;
  }
}

const Op* query(const Op* op, Warp& warp) {
  LaneTexture textures(op, warp, (op->flags & kSurfaceQuery) != 0, Geometry::none);
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const TextureObject* const object = textures.at(lane);
    if (object == nullptr) return nullptr;
    warp.reg<std::uint32_t>(op->d)[lane] = answer(object->source, op->flags >> kQueryShift & 7);
  }
  return op + 1;
}

}  // namespace

OpPair select_texture(const ptx::Instruction& instruction, const OperandWidths&) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const Handler handler = instruction.row->handler;
  if (handler == Handler::txq) {
    const std::uint32_t surface = instruction.stem == "suq" ? kSurfaceQuery : 0;
    const std::uint32_t flags = std::uint32_t{modifiers.selector} << kQueryShift | surface;
    return {query, query, flags};
  }
  if (handler != Handler::tex && handler != Handler::tld4) return {};
  auto flags = static_cast<std::uint32_t>(modifiers.geometry);
  if (modifiers.type[1] == ptx::Type::f32) flags |= kFloatCoordinates;
  if (modifiers.type[0] == ptx::Type::f16) flags |= kHalves;
  if (modifiers.type[0] == ptx::Type::f16x2) flags |= kPairs;
  if (handler == Handler::tld4)
    flags |= kGathers | std::uint32_t{modifiers.component} << kComponentShift;
  if (instruction.operands[0].has_predicate) flags |= kPredicate;
  const bool cube = modifiers.geometry == Geometry::cube || modifiers.geometry == Geometry::acube;
  const bool has_offsets =
      instruction.operands.size() > ptx::row_operands(*instruction.row).required;
  if (cube && has_offsets) return {};
  return {sample, sample, flags};
}

}  // namespace kernwright::sim::KW_SIM_NS
