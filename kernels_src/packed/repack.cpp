// Weights into the packed layout, and to numbers.
#include "base/format.h"
#include "base/math.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/formats/checks.h"
#include "kernels_src/formats/formats.h"
#include "kernels_src/operands.h"
#include "kernels_src/packed/pack_checks.h"
#include "kernels_src/packed/packed.h"
#include "kernels_src/packed/repack.cu.h"
#include "kernels_src/sort/sort.h"

namespace kernwright::kernels {
namespace {

const Family& repack_family() {
  static const auto& made = *new Family("repack.cu", text::repack_cu);
  return made;
}

// As in repack.cu.
struct RepackField {
  CUdeviceptr in = 0;
  std::uint64_t k = 0;
  std::uint32_t values = 1, bytes = 1, offset = 0, step = 1;
  std::uint64_t columns = 0;
  CUdeviceptr order = 0, lines = 0;
};

/// One call at work: its results, and everything held until its launches are queued.
class Repacker {
 public:
  Repacker(const PackCall& call, const Stream& on)
      : call_(call),
        traits_(packed_traits(call.format)),
        on_(on),
        device_(call.blocks[0].device()) {
    made_.format = call.format;
    made_.n = call.n;
    made_.k = call.k;
    made_.group = call.group;
    made_.tile = call.tile;
    tiles_ = ceil_div(call.n, 16);
    blocks_ = ceil_div(call.k, 128);
  }

  PackedWeights run() {
    switch (traits_.kind) {
      case PackedKind::words:
        pack_words();
        break;
      case PackedKind::absmax:
        pack_absmax();
        break;
      case PackedKind::float4:
        pack_float4();
        break;
      case PackedKind::tiles: {
        const auto k = static_cast<std::uint32_t>(call_.k);
        codes(block(0), traits_.source, {.values = k, .bytes = k});
        keep(2, block(1));
        break;
      }
      case PackedKind::gguf:
        pack_gguf();
    }
    for (const Array& array : held_) array.use_on(on_);
    check_packed(made_);
    return made_;
  }

 private:
  /// A block of the call, row-major.
  Array block(std::size_t i) {
    held_.push_back(contiguous(call_.blocks[i], on_));
    return held_.back();
  }
  Array make(std::size_t part, std::int64_t count, ScalarType type) {
    made_.parts[part] = Array::empty(device_, {count}, type, on_);
    held_.push_back(*made_.parts[part]);
    return held_.back();
  }
  /// An array that is taken as it is, in memory of its own.
  void keep(std::size_t part, const Array& array) {
    made_.parts[part] = copy(array.reshape({array.size()}), on_);
  }

  void codes(const Array& from, const char* source, RepackField field) {
    field.in = from.address();
    field.k = static_cast<std::uint64_t>(call_.k);
    const std::int64_t all = tiles_ * blocks_;
    const Array low = make(0, all * 256 * traits_.bits, ScalarType::uint8);
    CUdeviceptr high = 0;
    if (traits_.upper_bits > 0)
      high = make(1, all * 256 * traits_.upper_bits, ScalarType::uint8).address();
    if (low.size() == 0) return;
    const auto key = InstanceKey().add(call_.format, 5).add(call_.source, 2).add(0, 2);
    const LazyKernel& kernel = repack_family().instance(key, [&] {
      return format("pack_codes<{}, {}, {}, {}>", source, traits_.bits + traits_.upper_bits,
                    traits_.run, traits_.has_table);
    });
    const auto pieces = static_cast<std::uint64_t>(all) * 64;
    launch(kernel.on(device_), format_grid(pieces, on_), low.address(), high, field,
           static_cast<std::uint32_t>(call_.n), static_cast<std::uint32_t>(call_.k),
           static_cast<std::uint32_t>(blocks_), pieces);
  }

  /// Units of `bytes` each, `each` of a span of k: 128, or 256 with one.
  void units(std::size_t part, const Array& from, ScalarType type, int bytes, std::int64_t each,
             RepackField field) {
    field.in = from.address();
    field.k = static_cast<std::uint64_t>(call_.k);
    const bool wide = each == 1 && field.step == 256;
    const std::int64_t spans = wide ? (blocks_ + 1) / 2 : blocks_;
    const std::int64_t count = tiles_ * spans * 16 * each;
    const Array to = make(part, count * bytes / static_cast<std::int64_t>(scalar_size(type)), type);
    if (count == 0) return;
    const char* const unit = bytes == 1    ? "UInt8"
                             : bytes == 2  ? "UInt16"
                             : bytes == 4  ? "UInt32"
                             : bytes == 8  ? "UInt64"
                             : bytes == 12 ? "Twelve"
                                           : "Words";
    const auto key = InstanceKey().add(bytes, 5).add(wide, 1).add(1, 2);
    const LazyKernel& kernel = repack_family().instance(
        key, [&] { return format("pack_units<{}, {}>", unit, wide ? 256 : 128); });
    const auto numbers = static_cast<std::uint64_t>(count);
    launch(kernel.on(device_), format_grid(numbers, on_), to.address(), field,
           static_cast<std::uint32_t>(call_.n), static_cast<std::uint32_t>(call_.k),
           static_cast<std::uint32_t>(spans), static_cast<std::uint32_t>(each), numbers);
  }

  void zeros(const Array& from, RepackField field) {
    field.in = from.address();
    const auto each = static_cast<std::uint32_t>(128 / call_.group);
    const std::int64_t count = tiles_ * blocks_ * 16 * each;
    const Array to = make(3, count, ScalarType::uint8);
    if (count == 0) return;
    const bool awq = call_.source == PackedSource::awq;
    const LazyKernel& kernel = repack_family().instance(
        InstanceKey().add(awq, 1).add(2, 2), [&] { return format("pack_zeros<{}>", awq); });
    const auto numbers = static_cast<std::uint64_t>(count);
    launch(kernel.on(device_), format_grid(numbers, on_), to.address(), field,
           static_cast<std::uint32_t>(call_.n), static_cast<std::uint32_t>(call_.k),
           static_cast<std::uint32_t>(blocks_), each, static_cast<std::uint32_t>(call_.zero_offset),
           numbers);
  }

  /// The columns in the order of their groups, and the row of scales that each group has.
  void sort_groups(RepackField& field) {
    const Array groups = contiguous(*call_.groups, on_);
    const Array order = cast(argsort(groups, 0, false, on_), ScalarType::int32, on_);
    made_.parts[7] = order;
    const auto count = static_cast<std::uint32_t>(call_.k / call_.group);
    const Array lines = Array::empty(device_, {count}, ScalarType::int32, on_);
    held_.insert(held_.end(), {groups, order, lines});
    field.order = order.address();
    field.lines = lines.address();
    if (count == 0) return;
    const LazyKernel& kernel = repack_family().instance(InstanceKey().add(2, 2).add(2, 2),
                                                        [] { return "find_lines<UInt32>"; });
    launch(kernel.on(device_), format_grid(count, on_), lines.address(), groups.address(),
           order.address(), static_cast<std::uint32_t>(call_.group), count);
  }

  void pack_words() {
    const bool awq = call_.source == PackedSource::awq;
    const auto group = static_cast<std::uint32_t>(call_.group);
    RepackField field;
    field.columns = static_cast<std::uint64_t>(call_.n);
    if (call_.groups) sort_groups(field);
    codes(block(0), awq ? "AwqWords" : "GptqWords", field);
    field.values = field.step = group;
    const Array scales = block(1);
    const auto size = static_cast<int>(scalar_size(scales.type()));
    units(2, scales, scales.type(), size, 128 / call_.group, field);
    if (call_.blocks.size() == 3) zeros(block(2), field);
  }

  void pack_absmax() {
    codes(block(0), traits_.source, {});
    const auto group = static_cast<std::uint32_t>(call_.group);
    const bool nested = call_.blocks.size() == 5;
    const std::uint32_t bytes = nested ? 1 : 4;
    units(2, block(1), nested ? ScalarType::uint8 : ScalarType::float32, static_cast<int>(bytes),
          128 / call_.group, {.values = group, .bytes = bytes, .step = group});
    for (std::size_t i = 2; nested && i < 5; ++i) keep(i + 2, block(i));
  }

  /// Units of scales in blocks of `values` numbers and `bytes` bytes.
  void scales(std::size_t part, const Array& from, const PackedUnits& form, int values, int bytes) {
    if (form.bytes == 0) return;
    units(part, from, form.type, form.bytes, form.step == 256 ? 1 : 128 / form.step,
          {.values = static_cast<std::uint32_t>(values),
           .bytes = static_cast<std::uint32_t>(bytes),
           .offset = static_cast<std::uint32_t>(form.offset),
           .step = static_cast<std::uint32_t>(form.step)});
  }

  void pack_float4() {
    codes(block(0), traits_.source, {});
    scales(2, block(1), traits_.units, traits_.group, traits_.units.bytes);
    if (traits_.has_factor) keep(6, block(2));
  }

  void pack_gguf() {
    const Array in = block(0);
    const GgufFormat& gguf = gguf_format(traits_.name);
    codes(in, traits_.source,
          {.values = static_cast<std::uint32_t>(gguf.values),
           .bytes = static_cast<std::uint32_t>(gguf.bytes),
           .offset = static_cast<std::uint32_t>(traits_.source_offset)});
    scales(2, in, traits_.units, gguf.values, gguf.bytes);
    scales(3, in, traits_.super_units, gguf.values, gguf.bytes);
  }

  const PackCall& call_;
  const PackedTraits& traits_;
  const Stream& on_;
  Device& device_;
  PackedWeights made_;
  std::vector<Array> held_;
  std::int64_t tiles_ = 0, blocks_ = 0;
};

}  // namespace

PackedWeights pack_weights(const PackCall& call, const Stream& stream) {
  check_pack(call);
  const Stream on = stream ? stream : Stream::legacy(call.blocks[0].device());
  return Repacker(call, on).run();
}

Array unpack_weights(const PackedWeights& weights, std::int64_t first, std::int64_t last,
                     ScalarType type, const Stream& stream) {
  require_numbers(type, "the result");
  Device& device = weights.parts[0]->device();
  const Stream on = stream ? stream : Stream::legacy(device);
  Array result = Array::empty(device, {last - first, weights.k}, type, on);
  if (result.size() == 0) return result;
  const auto key = InstanceKey().add(packed_key(weights), kPackedKeyBits).type(type).add(3, 2);
  const LazyKernel& kernel = repack_family().instance(key, [&] {
    return format("unpack<{}, {}>", packed_device_format(weights, ScalarType::bfloat16),
                  device_type(type));
  });
  const PackedArrays arrays = packed_arrays(weights);
  const std::int64_t tiles = ceil_div(last, 16) - first / 16;
  const std::uint64_t pieces = static_cast<std::uint64_t>(tiles) * arrays.blocks * 64;
  launch(kernel.on(device), format_grid(pieces, on), result.address(), arrays,
         static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), pieces);
  for (const auto& part : weights.parts) {
    if (part) part->use_on(on);
  }
  result.use_on(on);
  return result;
}

}  // namespace kernwright::kernels
