// Chooses the kernel's instance (packs, width of the index, contiguous or strided) and launches it.
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/elementwise/call.h"
#include "kernels_src/elementwise/elementwise.cu.h"
#include "kernels_src/elementwise/layout.h"
#include "kernels_src/family.h"
#include "kernels_src/launch_choices.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace kernwright::kernels {
namespace {

constexpr std::uint32_t kThreads = 256, kFewThreads = 128;
constexpr std::int64_t kPackBytes = 16;
constexpr std::int64_t kHeavyPack = 4;
/// Enough blocks for every GPU; each thread of the strided kernel takes more when there are more.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 20;
/// One grid more than the count must still fit the index.
constexpr std::int64_t kNarrowLimit = std::numeric_limits<std::int32_t>::max();

enum class Form : std::uint8_t { each, same, value };

/// The differences between instances of the kernels.
struct Variant {
  bool is_strided = false;
  bool wide = false;  ///< 64-bit index
  int pack = 1;       ///< elements
  int packs = 1;      ///< of a thread, in the flat kernel
  std::array<Form, kMaxOperands> forms{};
};

/// Few packs are spread over more multiprocessors. More than a quarter of these gained nothing
/// (H100).
bool are_few(std::int64_t packs, const Device& device) {
  const std::int64_t processors = device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return packs <= processors / 4 * kFewThreads;
}

const char* form_name(Form form) {
  constexpr std::array names = {"Each", "Same", "Value"};
  return names[static_cast<std::size_t>(form)];
}

/// Packs of a thread where arrays are contiguous: one where two would leave multiprocessors idle.
int pack_count(const ElementwiseCall& call, const Array& result, std::int64_t pack) {
  const std::int64_t full =
      2 * pack * kThreads * result.device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const bool heavy = info(call.operation).code == OperationInfo::Code::HEAVY;
  const int rule = heavy || result.size() < full ? 1 : 2;
  return choose(LaunchChoice::elementwise_packs, result.device(), result.size(),
                scalar_size(result.type()), rule);
}

std::string expression(const ElementwiseCall& call, ScalarType stored, const Variant& variant) {
  const OperationInfo& operation = info(call.operation);
  const char* index = variant.wide ? "unsigned long long" : "unsigned int";
  std::string text =
      format("{}<{}, {}, {}, {}", variant.is_strided ? "strided" : "flat", operation.functor,
             device_type(call.result), device_type(stored), variant.pack);
  text += variant.is_strided ? format(", {}, {}", index, variant.wide ? "long long" : "int")
                             : format(", {}, {}", variant.packs, index);
  for (std::size_t i = 0; i < static_cast<std::size_t>(call.arity); ++i) {
    const CallInput& input = call.inputs[i];
    text += format(", {}<", form_name(variant.forms[i]));
    if (variant.forms[i] != Form::value) text += format("{}, ", device_type(input.type));
    text += format("{}>", device_type(input.computed));
  }
  return text + ">";
}

const Kernel& kernel_for(const ElementwiseCall& call, const Array& result, const Variant& variant) {
  static const auto& family = *new Family("elementwise.cu", text::elementwise_cu);
  InstanceKey key;
  key.add(call.operation, 7).type(call.result).type(result.type());
  key.add(variant.is_strided, 1)
      .add(variant.wide, 1)
      .add(std::countr_zero(unsigned(variant.pack)), 3)
      .add(variant.packs, 2);
  for (std::size_t i = 0; i < static_cast<std::size_t>(call.arity); ++i) {
    const CallInput& input = call.inputs[i];
    key.add(static_cast<unsigned>(variant.forms[i]) + 1, 2).type(input.type).type(input.computed);
  }
  return family.instance(key, [&] { return expression(call, result.type(), variant); })
      .on(result.device());
}

/// The most elements of a pack, by the sizes of elements alone.
std::int64_t widest_pack(const ElementwiseCall& call, const Array& result) {
  std::size_t size = scalar_size(result.type());
  for (int i = 0; i < call.arity; ++i) {
    const CallInput& input = call.inputs[static_cast<std::size_t>(i)];
    if (input.array != nullptr) size = std::max(size, scalar_size(input.type));
  }
  const std::int64_t pack = kPackBytes / static_cast<std::int64_t>(size);
  const bool heavy = info(call.operation).code == OperationInfo::Code::HEAVY;
  return heavy ? std::min(pack, kHeavyPack) : pack;
}

/// Halves `pack` until `bytes` is a multiple of packs of elements of `size`. Both are powers of
/// two: divisions would be a good part of a small call's time, here and below.
void narrow_to(std::int64_t& pack, std::uint64_t bytes, std::size_t size) {
  while (pack > 1 && (bytes & (static_cast<std::uint64_t>(pack) * size - 1)) != 0) pack >>= 1;
}

/// The kernel's arguments: result, count, view if any, operands.
class Arguments {
 public:
  Arguments(const ElementwiseCall& call, CUdeviceptr out) : out_(out) {
    values_ = {&out_, nullptr};
    for (std::size_t i = 0; i < static_cast<std::size_t>(call.arity); ++i) {
      const CallInput& input = call.inputs[i];
      addresses_[i] = input.array != nullptr ? input.array->address() : 0;
      operands_[i] = input.array != nullptr
                         ? static_cast<void*>(&addresses_[i])
                         : static_cast<void*>(const_cast<std::byte*>(input.value.data()));
    }
    arity_ = static_cast<std::size_t>(call.arity);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  void move_to(const Layout& part) {
    out_ = part.base[0];
    std::copy(part.base.begin() + 1, part.base.end(), addresses_.begin());
  }
  struct Grid {
    std::int64_t blocks;
    std::uint32_t threads = kThreads;
  };
  void launch(const Kernel& kernel, Grid grid, bool wide, std::int64_t count, void* view,
              const Stream& stream) {
    auto narrow = static_cast<std::uint32_t>(count);
    values_[1] = wide ? static_cast<void*>(&count) : static_cast<void*>(&narrow);
    std::size_t used = 2;
    if (view != nullptr) values_[used++] = view;
    for (std::size_t i = 0; i < arity_; ++i) values_[used++] = operands_[i];
    const LaunchConfig config{.grid = {static_cast<std::uint32_t>(grid.blocks)},
                              .block = {grid.threads},
                              .stream = stream};
    launch_arguments(kernel, config, std::span<void* const>(values_.data(), used));
  }

 private:
  CUdeviceptr out_;
  std::size_t arity_ = 0;
  std::array<CUdeviceptr, kMaxOperands> addresses_{};
  std::array<void*, kMaxOperands> operands_{};
  std::array<void*, 3 + kMaxOperands> values_{};
};

void launch_flat(const ElementwiseCall& call, const Array& result, Variant variant,
                 const Stream& stream) {
  std::int64_t pack = widest_pack(call, result);
  narrow_to(pack, result.address(), scalar_size(result.type()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(call.arity); ++i) {
    if (variant.forms[i] != Form::each) continue;
    narrow_to(pack, call.inputs[i].array->address(), scalar_size(call.inputs[i].type));
  }
  const std::int64_t count = result.size();
  // Few of them: half a pack for each thread of a block is faster than half the threads (H100).
  const bool few = are_few(count >> std::countr_zero(unsigned(pack)), result.device());
  const bool halved = few && pack > 1 && info(call.operation).code != OperationInfo::Code::HEAVY;
  if (halved) pack /= 2;
  const std::uint32_t threads = few && !halved ? kFewThreads : kThreads;
  variant.pack = static_cast<int>(pack);
  variant.packs = pack_count(call, result, pack);
  const std::int64_t per_block = pack * variant.packs * threads;
  // Packs, and elements behind them.
  const std::int64_t single = (count >> std::countr_zero(unsigned(pack))) + (count & (pack - 1));
  const std::int64_t blocks = variant.packs == 1
                                  ? (single + threads - 1) >> std::countr_zero(threads)
                                  : ceil_div(count, per_block);
  variant.wide = count > kNarrowLimit - per_block;
  Arguments(call, result.address())
      .launch(kernel_for(call, result, variant), {blocks, threads}, variant.wide, count, nullptr,
              stream);
}

/// Whether all arrays are as the flat kernel reads them; the forms go to `variant`.
bool is_flat(const ElementwiseCall& call, const Array& result, Variant& variant) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(call.arity); ++i) {
    const Array* const array = call.inputs[i].array;
    if (array == nullptr) {
      variant.forms[i] = Form::value;
    } else if (array->is_contiguous() && array->shape() == result.shape()) {
      variant.forms[i] = Form::each;
    } else if (array->size() == 1) {
      variant.forms[i] = Form::same;
    } else {
      return false;
    }
  }
  return result.is_contiguous();
}

/// Packs along the innermost dimension: 1 unless every array has neighbours there, or one repeated
/// element. The dimension then counts packs.
int pack_innermost(const ElementwiseCall& call, const Array& result, Layout& layout,
                   Variant& variant) {
  if (layout.dims.empty()) return 1;
  const auto& inner = layout.dims.front();
  std::int64_t pack = widest_pack(call, result);
  narrow_to(pack, static_cast<std::uint64_t>(inner.extent), 1);
  for (std::size_t k = 0; k <= static_cast<std::size_t>(call.arity); ++k) {
    const Array* const array = k == 0 ? &result : call.inputs[k - 1].array;
    if (array == nullptr || (k > 0 && inner.stride[k] == 0)) continue;
    const std::size_t size = scalar_size(array->type());
    if (inner.stride[k] != static_cast<std::int64_t>(size)) return 1;
    narrow_to(pack, array->address(), size);
    for (std::size_t d = 1; d < layout.dims.size(); ++d) {
      narrow_to(pack, static_cast<std::uint64_t>(layout.dims[d].stride[k]), size);
    }
  }
  if (pack == 1) return 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(call.arity); ++i) {
    if (variant.forms[i] == Form::each && inner.stride[i + 1] == 0) variant.forms[i] = Form::same;
  }
  pack_dims(layout.dims, pack);
  return static_cast<int>(pack);
}

/// Whether counts and distances fit 32 bits.
bool fits_narrow(const Layout& layout) {
  if (layout.count() > kNarrowLimit / 2) return false;
  for (std::size_t k = 0; k <= kMaxOperands; ++k) {
    double distance = 0;
    for (const auto& dim : layout.dims) {
      distance += static_cast<double>(dim.extent) * std::abs(static_cast<double>(dim.stride[k]));
    }
    if (distance > static_cast<double>(kNarrowLimit)) return false;
  }
  return true;
}

void launch_strided(const ElementwiseCall& call, const Array& result, Variant variant,
                    const Stream& stream) {
  std::array<const Array*, kMaxOperands> arrays{};
  for (std::size_t i = 0; i < kMaxOperands; ++i) {
    arrays[i] = call.inputs[i].array;
    variant.forms[i] = arrays[i] != nullptr ? Form::each : Form::value;
  }
  Layout layout =
      plan_layout(result, std::span(arrays).first(static_cast<std::size_t>(call.arity)));
  variant.is_strided = true;
  variant.pack = pack_innermost(call, result, layout, variant);
  variant.wide = !fits_narrow(layout);
  Arguments arguments(call, result.address());
  const Kernel& kernel = kernel_for(call, result, variant);
  layout.for_each_part([&](const Layout& part) {
    arguments.move_to(part);
    const std::int64_t packs = part.count();
    const std::int64_t blocks = walk_blocks(packs, kThreads, kMostBlocks);
    const auto send = [&](auto view) {
      arguments.launch(kernel, {blocks}, variant.wide, packs, &view, stream);
    };
    variant.wide ? send(part.parameter())
                 : send(walk_parameter<kWalkDims, std::int32_t>(part.dims));
  });
}

}  // namespace

void launch_call(const ElementwiseCall& call, const Array& result, const Stream& stream) {
  Variant variant;
  if (is_flat(call, result, variant)) {
    launch_flat(call, result, variant, stream);
  } else {
    launch_strided(call, result, variant, stream);
  }
  result.use_on(stream);
  for (int i = 0; i < call.arity; ++i) {
    const CallInput& input = call.inputs[static_cast<std::size_t>(i)];
    if (input.array != nullptr) input.array->use_on(stream);
  }
}

}  // namespace kernwright::kernels
