// mov in all its forms, special registers, and the parameters of kernels and calls.
#include "sim/code/program.h"
#include "sim/exec/copy/strided_copy.h"
#include "sim/ops/types.h"
#include "sim/ptx/isa.h"

namespace kernwright::sim::KW_SIM_NS {

OpPair internal_move(Internal which);

namespace {

using Copy = decltype([](auto a) { return a; });

template <bool kMasked>
const Op* move_wide(const Op* op, Warp& warp) {  // 128-bit registers
  const std::byte* a = warp.frame + op->a;
  std::byte* d = warp.frame + op->d;
  for_active<kMasked>(warp, [=](int i) { std::memmove(d + 16 * i, a + 16 * i, 16); });
  return op + 1;
}

template <bool kMasked, bool kNot>
const Op* move_predicate(const Op* op, Warp& warp) {
  const std::uint32_t bits = warp.pred(op->a);
  write_predicate<kMasked>(warp, op->d, kNot ? ~bits : bits);
  return op + 1;
}

/// d = {e0, e1, ...}: kBits of each element, the first lowest.
template <bool kMasked, typename D, typename E, int kCount>
const Op* pack(const Op* op, Warp& warp) {
  const std::uint32_t* list = warp.program->lists.data() + op->a;
  constexpr int kBits = static_cast<int>(sizeof(D)) * 8 / kCount;
  constexpr D kOne = static_cast<D>((std::uint64_t{1} << (kBits - 1) << 1) - 1);
  const E* e[kCount];
  for (int k = 0; k < kCount; ++k) e[k] = warp.reg<E>(list[k]);
  write_lanes<kMasked, D>(warp, op->d, [&](int i) {
    D value = 0;
    for (int k = 0; k < kCount; ++k) {
      value = static_cast<D>(value | static_cast<D>(static_cast<D>(e[k][i]) & kOne) << (k * kBits));
    }
    return value;
  });
  return op + 1;
}

/// {e0, e1, ...} = a.
template <bool kMasked, typename A, typename E, int kCount>
const Op* unpack(const Op* op, Warp& warp) {
  const std::uint32_t* list = warp.program->lists.data() + op->d;
  constexpr int kBits = static_cast<int>(sizeof(A)) * 8 / kCount;
  constexpr A kOne = static_cast<A>((std::uint64_t{1} << (kBits - 1) << 1) - 1);
  const A* a = warp.reg<A>(op->a);
  for (int k = 0; k < kCount; ++k) {
    write_lanes<kMasked, E>(warp, list[k],
                            [=](int i) { return static_cast<E>((a[i] >> (k * kBits)) & kOne); });
  }
  return op + 1;
}

template <typename W, typename E, int kCount>
OpPair pack_pair(bool packs) {
  if (packs) return {pack<false, W, E, kCount>, pack<true, W, E, kCount>};
  return {unpack<false, W, E, kCount>, unpack<true, W, E, kCount>};
}

/// 128-bit registers from two of 64 bits or four of 32, and back.
template <bool kMasked, bool kPacks, typename E>
const Op* parts(const Op* op, Warp& warp) {
  constexpr int kCount = 16 / sizeof(E);
  const std::uint32_t* list = warp.program->lists.data() + (kPacks ? op->a : op->d);
  E* whole = warp.reg<E>(kPacks ? op->d : op->a);
  for (int k = 0; k < kCount; ++k) {
    E* part = warp.reg<E>(list[k]);
    for_active<kMasked>(warp, [=](int i) {
      E& whole_element = whole[kCount * i + k];
      (kPacks ? whole_element : part[i]) = kPacks ? part[i] : whole_element;
    });
  }
  return op + 1;
}

template <typename E>
OpPair parts_pair(bool packs) {
  return packs ? OpPair{parts<false, true, E>, parts<true, true, E>}
               : OpPair{parts<false, false, E>, parts<true, false, E>};
}

OpPair select_vector(int whole_bits, std::size_t count, std::uint8_t element, bool packs) {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  if (whole_bits == 128) return count == 2 ? parts_pair<U64>(packs) : parts_pair<U32>(packs);
  if (whole_bits == 64 && count == 2 && element == 4) return pack_pair<U64, U32, 2>(packs);
  if (element != 2) return {};
  if (whole_bits == 64 && count == 4) return pack_pair<U64, U16, 4>(packs);
  if (whole_bits == 32 && count == 2) return pack_pair<U32, U16, 2>(packs);
  if (whole_bits == 32 && count == 4) return pack_pair<U32, U16, 4>(packs);  // 8-bit registers
  return whole_bits == 16 && count == 2 ? pack_pair<U16, U16, 2>(packs) : OpPair{};
}

/// Writes the lower bits of value(lane) into the (active) lanes of a register of `bytes` per lane.
template <bool kMasked, typename F>
void write_width(Warp& warp, std::uint32_t offset, std::uint64_t bytes, F value) {
  const auto write = [&]<typename T>() {
    write_lanes<kMasked, T>(warp, offset, [=](int i) { return static_cast<T>(value(i)); });
  };
  switch (bytes) {
    case 2: return write.template operator()<std::uint16_t>();
    case 4: return write.template operator()<std::uint32_t>();
    default: return write.template operator()<std::uint64_t>();
  }
}

/// Writes `bits` into all (active) lanes.
template <bool kMasked>
void broadcast(Warp& warp, std::uint32_t offset, std::uint64_t bytes, std::uint64_t bits) {
  write_width<kMasked>(warp, offset, bytes, [=](int) { return bits; });
}

template <bool kMasked>
const Op* special_uniform(const Op* op, Warp& warp) {
  const auto which = static_cast<ptx::SpecialRegister>(op->flags);
  if (op->imm == kPredicateWidth) {
    write_predicate<kMasked>(warp, op->d, warp.uniform_special(which) != 0 ? kAllLanes : 0);
    return op + 1;
  }
  broadcast<kMasked>(warp, op->d, static_cast<std::uint64_t>(op->imm), warp.uniform_special(which));
  return op + 1;
}

std::uint32_t lane_value(ptx::SpecialRegister which, int lane) {
  using enum ptx::SpecialRegister;
  const std::uint32_t bit = 1u << lane;
  switch (which) {
    case laneid: return static_cast<std::uint32_t>(lane);
    case lanemask_eq: return bit;
    case lanemask_le: return bit | (bit - 1);
    case lanemask_lt: return bit - 1;
    case lanemask_ge: return ~(bit - 1);
    case lanemask_gt: return ~(bit | (bit - 1));
    default: return 0;  // every other register is the same for all lanes, or read by the caller
  }
}

template <bool kMasked>
const Op* special_lane(const Op* op, Warp& warp) {
  const auto which = static_cast<ptx::SpecialRegister>(op->flags);
  alignas(64) std::uint32_t values[kLanes];
  if (which <= ptx::SpecialRegister::tid_z) {
    const auto axis =
        static_cast<std::size_t>(which) - static_cast<std::size_t>(ptx::SpecialRegister::tid_x);
    for (int i = 0; i < kLanes; ++i) values[i] = warp.tid[axis][static_cast<std::size_t>(i)];
  } else {
    for (int i = 0; i < kLanes; ++i) values[i] = lane_value(which, i);
  }
  const std::uint32_t* const value = values;
  write_width<kMasked>(warp, op->d, static_cast<std::uint64_t>(op->imm),
                       [=](int i) { return value[i]; });
  return op + 1;
}

template <bool kMasked>
const Op* local_address(const Op* op, Warp& warp) {
  const std::uint32_t* base = warp.reg<std::uint32_t>(kLocalBaseOffset);
  const auto offset = static_cast<std::uint64_t>(op->imm);
  write_width<kMasked>(warp, op->d, op->flags, [=](int i) { return base[i] + offset; });
  return op + 1;
}

template <bool kMasked>
const Op* dynamic_shared(const Op* op, Warp& warp) {
  const LaunchContext& launch = *warp.worker->launch;
  const FunctionInfo* entry = warp.program->functions.data() + launch.function;
  broadcast<kMasked>(
      warp, op->d, op->flags,
      warp.rank_bits + entry->dynamic_shared_offset + static_cast<std::uint64_t>(op->imm));
  return op + 1;
}

/// Copies the lane's parameters to local memory and gives their address there.
template <bool kMasked>
const Op* parameter_copy(const Op* op, Warp& warp) {
  const std::byte* from = warp.frame + op->a;
  const std::uint32_t* base = warp.reg<std::uint32_t>(kLocalBaseOffset);
  std::uint64_t* d = warp.reg<std::uint64_t>(op->d);
  for_active<kMasked>(warp, [&](int i) {
    const auto lane = static_cast<std::uint64_t>(i);
    const std::uint64_t place = base[i] + std::uint64_t{op->c};
    std::memcpy(warp.local + lane * warp.local_bytes + place, from + lane * op->b, op->flags);
    d[i] = place + static_cast<std::uint64_t>(op->imm);
  });
  return op + 1;
}

/// Layout of the flags from parameter_flags().
struct ParameterForm {
  explicit ParameterForm(std::uint32_t flags)
      : memory(flags & 0xff), reg((flags >> 8) & 0xff), is_signed((flags >> 16) != 0) {}
  std::uint32_t memory, reg;
  bool is_signed;

  /// The value at `from`, extended to 64 bits.
  std::uint64_t read(const std::byte* from) const {
    switch (memory) {
      case 1: return extend<std::uint8_t, std::int8_t>(from);
      case 2: return extend<std::uint16_t, std::int16_t>(from);
      case 4: return extend<std::uint32_t, std::int32_t>(from);
      default: return extend<std::uint64_t, std::int64_t>(from);
    }
  }
  template <typename U, typename S>
  std::uint64_t extend(const std::byte* from) const {
    U value;
    std::memcpy(&value, from, sizeof value);
    return is_signed ? static_cast<std::uint64_t>(static_cast<S>(value)) : value;
  }
  void write(std::byte* slot, int lane, std::uint64_t value) const {
    std::memcpy(slot + static_cast<std::uint32_t>(lane) * reg, &value, reg < 8 ? reg : 8);
  }
};

template <bool kMasked>
const Op* load_parameter(const Op* op, Warp& warp) {
  const ParameterForm form(op->flags);
  const std::byte* from = warp.worker->launch->parameters + op->imm;
  if (form.memory == 16) {
    std::byte* d = warp.frame + op->d;
    for_active<kMasked>(warp, [=](int i) { std::memcpy(d + 16 * i, from, 16); });
  } else {
    broadcast<kMasked>(warp, op->d, form.reg, form.read(from));
  }
  return op + 1;
}

template <bool kMasked>
const Op* load_lane(const Op* op, Warp& warp) {
  const ParameterForm form(op->flags);
  const std::byte* from = warp.frame + op->a + op->imm;
  std::byte* d = warp.frame + op->d;
  if (form.memory == form.reg) {
    copy_lanes({d, form.reg}, {from, op->b}, form.memory, kMasked ? warp.mask : kAllLanes);
    return op + 1;
  }
  for_active<kMasked>(warp, [&](int i) {
    form.write(d, i, form.read(from + static_cast<std::uint32_t>(i) * op->b));
  });
  return op + 1;
}

template <bool kMasked>
const Op* store_lane(const Op* op, Warp& warp) {
  const ParameterForm form(op->flags);
  copy_lanes({warp.frame + op->a + op->imm, op->b}, {warp.frame + op->c, form.reg}, form.memory,
             kMasked ? warp.mask : kAllLanes);
  return op + 1;
}

}  // namespace

OpPair internal_move(Internal which) {
  switch (which) {
    case Internal::not_predicate: return {move_predicate<false, true>, move_predicate<true, true>};
    case Internal::special_uniform: return {special_uniform<false>, special_uniform<true>};
    case Internal::special_lane: return {special_lane<false>, special_lane<true>};
    case Internal::local_address: return {local_address<false>, local_address<true>};
    case Internal::dynamic_shared: return {dynamic_shared<false>, dynamic_shared<true>};
    case Internal::parameter_copy: return {parameter_copy<false>, parameter_copy<true>};
    case Internal::load_parameter: return {load_parameter<false>, load_parameter<true>};
    case Internal::load_lane: return {load_lane<false>, load_lane<true>};
    case Internal::store_lane: return {store_lane<false>, store_lane<true>};
    default: return {};
  }
}

OpPair select_move(const ptx::Instruction& inst, const OperandWidths& widths) {
  if (inst.row->handler != ptx::Handler::mov) return {};
  const ptx::Type type = inst.modifiers.type[0];
  const ptx::Operand& d = inst.operands[0];
  const ptx::Operand& a = inst.operands[1];
  if (type == ptx::Type::pred) return {move_predicate<false, false>, move_predicate<true, false>};
  if (inst.modifiers.vector > 1) return {};  // move_vector.cpp
  if (a.kind == ptx::OperandKind::vector) {
    return select_vector(ptx::bits(type), a.elements.size(), widths[1], true);
  }
  if (d.kind == ptx::OperandKind::vector) {
    return select_vector(ptx::bits(type), d.elements.size(), widths[0], false);
  }
  if (type == ptx::Type::b128) return {move_wide<false>, move_wide<true>};
  return by_width(type, []<typename T>() { return unary_pair<Copy, T>(); });
}

}  // namespace kernwright::sim::KW_SIM_NS
