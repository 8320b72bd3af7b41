// suld, sust and sured: bytes of a CUDA array by coordinates, each lane checked.
#include "base/format.h"
#include "sim/exec/copy/bulk_reduce.h"
#include "sim/numeric/half.h"
#include "sim/ops/texture/texture_lanes.h"
#include "sim/ptx/isa.h"

#include <algorithm>
#include <array>

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Geometry;
using ptx::Handler;

enum class Outside : std::uint8_t { trap, clamp, zero };

// Op::flags beside the geometry.
constexpr int kOutsideShift = 3;
constexpr std::uint32_t kSamples = 1 << 5;  ///< .p form: x counts elements, values are converted
constexpr int kMemoryShift = 6;             ///< log2 of the bytes of one value in memory
constexpr int kRegisterShift = 8;           ///< and of its register
constexpr int kVectorShift = 10;            ///< log2 of the number of values
constexpr int kAtomShift = 12;              ///< sured: ptx::AtomOp
constexpr int kTypeShift = 16;              ///< and ptx::Type

unsigned field(const Op* op, int shift, unsigned mask) { return op->flags >> shift & mask; }

constexpr const char* kVerbs[] = {"read", "write", "reduction"};

/// The place of one lane's access.
struct Place {
  std::byte* host = nullptr;  ///< null: nowhere
  bool faulted = false;
};

Place refuse(const Op* op, Warp& warp, int lane, FaultKind kind, std::string message) {
  texture_fault(op, warp, lane, kind, std::move(message));
  return {nullptr, true};
}

Place locate_lane(const Op* op, Warp& warp, int lane, const TextureObject& object, AccessKind kind,
                  std::uint32_t bytes) {
  const TextureSource& source = object.source;
  const Geometry shape = op_geometry(op);
  const int first = has_layers(shape) ? 1 : 0, axes = count_axes(shape);
  // x in bytes, y, z and the layer, with the largest value of each.
  std::array<std::int64_t, 4> at{}, most{};
  for (int i = 0; i < axes; ++i) {
    const auto k = static_cast<unsigned>(i);
    at[k] = list_element<std::int32_t>(warp, op->b, first + i, lane);
    most[k] = std::int64_t{source.extent[k]} - 1;
  }
  const bool samples = (op->flags & kSamples) != 0;
  if (samples) at[0] *= source.bytes;
  most[0] = std::int64_t{source.extent[0]} * source.bytes - bytes;
  if (first == 1) at[3] = list_element<std::int32_t>(warp, op->b, 0, lane);
  most[3] = std::int64_t{source.layers} - 1;
  const char* const verb = kVerbs[static_cast<std::size_t>(kind)];
  if (at[0] % bytes != 0)
    return refuse(op, warp, lane, FaultKind::alignment,
                  format("surface {} of {} bytes at x = {} bytes, which is not a multiple of {}",
                         verb, bytes, at[0], bytes));
  const auto outside = static_cast<Outside>(field(op, kOutsideShift, 3));
  for (unsigned k = 0; k < 4; ++k) {
    if (at[k] >= 0 && at[k] <= most[k]) continue;
    if (outside == Outside::zero) return {};
    if (outside == Outside::trap || most[k] < 0)
      return refuse(
          op, warp, lane, FaultKind::bounds,
          format("surface {} of {} bytes at x = {} bytes{}{}{}, outside {} of {} bytes", verb,
                 bytes, at[0], axes > 1 ? format(", y = {}", at[1]) : "",
                 axes > 2 ? format(", z = {}", at[2]) : "",
                 first == 1 ? format(", layer {}", at[3]) : "", source.name, source.bytes));
    at[k] = std::clamp<std::int64_t>(at[k], 0, most[k]);
  }
  const std::uint64_t address =
      source.address + static_cast<std::uint64_t>(at[2] + at[3]) * source.slice +
      static_cast<std::uint64_t>(at[1]) * source.pitch + static_cast<std::uint64_t>(at[0]);
  std::byte* const host = reach(op, warp, lane, kind, address, bytes);
  return {host, host == nullptr};
}

/// Calls run(lane, object, place) for each lane; a place of null host: outside and ignored.
template <typename F>
const Op* each_place(const Op* op, Warp& warp, AccessKind kind, F run) {
  LaneTexture surfaces(op, warp, true, op_geometry(op));
  const std::uint32_t given = 1u << (field(op, kMemoryShift, 3) + field(op, kVectorShift, 3));
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const TextureObject* const object = surfaces.at(lane);
    if (object == nullptr) return nullptr;
    const std::uint32_t bytes = (op->flags & kSamples) != 0 ? object->source.bytes : given;
    warp.charge(kTexelCost);
    const Place place = locate_lane(op, warp, lane, *object, kind, bytes);
    if (place.faulted) return nullptr;
    run(lane, object->source, place.host);
  }
  return op + 1;
}

/// The register of value `i` of a list, whatever its width.
std::byte* value_register(const Op* op, const Warp& warp, std::uint32_t list, unsigned i,
                          int lane) {
  const unsigned shift = field(op, kRegisterShift, 3);
  return warp.frame + warp.program->lists[list + i] + (static_cast<std::size_t>(lane) << shift);
}

/// Values narrower than their registers are extended by zeros.
const Op* load_surface(const Op* op, Warp& warp) {
  return each_place(op, warp, AccessKind::read,
                    [&](int lane, const TextureSource&, const std::byte* from) {
                      const std::size_t bytes = 1u << field(op, kMemoryShift, 3);
                      for (unsigned i = 0; i < 1u << field(op, kVectorShift, 3); ++i) {
                        std::byte* const to = value_register(op, warp, op->d, i, lane);
                        std::memset(to, 0, 1u << field(op, kRegisterShift, 3));
                        if (from != nullptr) std::memcpy(to, from + i * bytes, bytes);
                      }
                    });
}

/// A channel of sust.p: a value outside the format becomes the nearest one.
template <typename T>
void store_integer(std::byte* to, std::int64_t value) {
  const auto narrow = static_cast<T>(std::clamp<std::int64_t>(value, std::numeric_limits<T>::min(),
                                                              std::numeric_limits<T>::max()));
  std::memcpy(to, &narrow, sizeof narrow);
}

void store_channel(std::byte* to, CUarray_format format, std::uint32_t bits) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: return store_integer<std::uint8_t>(to, bits);
    case CU_AD_FORMAT_SIGNED_INT8:
      return store_integer<std::int8_t>(to, static_cast<std::int32_t>(bits));
    case CU_AD_FORMAT_UNSIGNED_INT16: return store_integer<std::uint16_t>(to, bits);
    case CU_AD_FORMAT_SIGNED_INT16:
      return store_integer<std::int16_t>(to, static_cast<std::int32_t>(bits));
    case CU_AD_FORMAT_HALF: {
      const std::uint16_t half = numeric::f32_to_f16(std::bit_cast<float>(bits));
      std::memcpy(to, &half, sizeof half);
      return;
    }
    default: std::memcpy(to, &bits, sizeof bits);
  }
}

/// Channels without a value in sust.p keep theirs; values of missing channels are dropped.
const Op* store_surface(const Op* op, Warp& warp) {
  return each_place(
      op, warp, AccessKind::write, [&](int lane, const TextureSource& source, std::byte* to) {
        if (to == nullptr) return;
        const bool samples = (op->flags & kSamples) != 0;
        const std::size_t bytes =
            samples ? source.bytes / source.channels : 1u << field(op, kMemoryShift, 3);
        const unsigned given = 1u << field(op, kVectorShift, 3);
        const unsigned count = samples ? std::min(given, source.channels) : given;
        for (unsigned i = 0; i < count; ++i) {
          const std::byte* const from = value_register(op, warp, op->c, i, lane);
          if (samples) {
            std::uint32_t bits;
            std::memcpy(&bits, from, sizeof bits);
            store_channel(to + i * bytes, source.format, bits);
          } else {
            std::memcpy(to + i * bytes, from, bytes);
          }
        }
      });
}

const Op* reduce_surface(const Op* op, Warp& warp) {
  return each_place(
      op, warp, AccessKind::atomic, [&](int lane, const TextureSource&, std::byte* to) {
        if (to == nullptr) return;
        reduce_bytes(to, value_register(op, warp, op->c, 0, lane), 1u << field(op, kMemoryShift, 3),
                     static_cast<ptx::AtomOp>(field(op, kAtomShift, 15)),
                     static_cast<ptx::Type>(field(op, kTypeShift, 255)), true);
      });
}

std::uint32_t binary_log(unsigned value) {
  return static_cast<std::uint32_t>(std::countr_zero(value));
}

}  // namespace

OpPair select_surface(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const Handler handler = instruction.row->handler;
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (handler != Handler::suld && handler != Handler::sust && handler != Handler::sured) return {};
  auto flags = static_cast<std::uint32_t>(modifiers.geometry);
  flags |= std::uint32_t{modifiers.selector} << kOutsideShift;
  if (modifiers.component != 0) flags |= kSamples;
  flags |= binary_log(static_cast<unsigned>(ptx::bits(modifiers.type[0])) / 8) << kMemoryShift;
  flags |= binary_log(widths[handler == Handler::suld ? 0 : 1]) << kRegisterShift;
  flags |= binary_log(modifiers.vector) << kVectorShift;
  flags |= static_cast<std::uint32_t>(modifiers.atom) << kAtomShift;
  // Bits have no sign: reductions know them as unsigned numbers.
  const bool bits = modifiers.type[0] == ptx::Type::b32;
  flags |= static_cast<std::uint32_t>(bits ? ptx::Type::u32 : modifiers.type[0]) << kTypeShift;
  switch (handler) {
    case Handler::suld: return {load_surface, load_surface, flags};
    case Handler::sust: return {store_surface, store_surface, flags};
    default: return {reduce_surface, reduce_surface, flags};
  }
}

}  // namespace kernwright::sim::KW_SIM_NS
