// Copies, shifts by whole bytes, permutations, and packing of registers into larger ones.
#include "sim/check/flow/moved_bytes.h"

#include "sim/ptx/isa.h"

#include <algorithm>

namespace kernwright::sim {

using ptx::Handler;
using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;

namespace {

using Windows = std::optional<std::vector<ByteWindow>>;

bool is_signed(ptx::Type type) {
  return type == ptx::Type::s8 || type == ptx::Type::s16 || type == ptx::Type::s32 ||
         type == ptx::Type::s64;
}

/// A constant operand of whole bytes, counted in bits.
std::optional<int> bytes_in(const Operand& operand) {
  if (operand.kind != OperandKind::integer || operand.bits % 8 != 0 || operand.bits > 64)
    return std::nullopt;
  return static_cast<int>(operand.bits / 8);
}

std::vector<ByteWindow> one_window(const ByteWindow& window) {
  return window.count > 0 ? std::vector{window} : std::vector<ByteWindow>{};
}

/// Byte i of the result is byte from(i) of the window's register; below 0: not of it.
template <typename From>
std::vector<ByteWindow> gather(const ByteWindow& window, std::uint32_t reg, int bytes, From from) {
  std::vector<ByteWindow> all;
  for (int i = 0; i < bytes; ++i) {
    const int source = from(i) - window.first;
    if (from(i) < 0 || source < 0 || source >= window.count) continue;
    const int byte = window.byte + source;
    ByteWindow* const last = all.empty() ? nullptr : &all.back();
    if (last != nullptr && last->first + last->count == i && last->byte + last->count == byte) {
      ++last->count;
    } else {
      all.push_back({reg, i, 1, byte});
    }
  }
  return all;
}

Windows move(const ptx::Function& function, const Instruction& one, const ByteWindow& window) {
  const Operand &target = one.operands[0], &source = one.operands[1];
  const bool unpacks = target.kind == OperandKind::vector;
  if (!unpacks && source.kind != OperandKind::vector)
    return one_window(window.part(0, ptx::bits(one.modifiers.type[0]) / 8, target.reg, 0));
  std::vector<ByteWindow> all;
  int at = 0;
  const std::vector<Operand>& elements = unpacks ? target.elements : source.elements;
  for (const Operand& element : elements) {
    const bool is_register = element.kind == OperandKind::reg && element.reg != ptx::kNoRegister;
    const int bits = is_register
                         ? ptx::bits(function.registers[element.reg].type)
                         : ptx::bits(one.modifiers.type[0]) / static_cast<int>(elements.size());
    const ByteWindow part = unpacks ? window.part(at, at + bits / 8, element.reg, 0)
                                    : window.part(0, bits / 8, target.reg, at);
    const bool takes = is_register && (unpacks || element.reg == window.reg);
    if (takes && part.count > 0) all.push_back(part);
    at += bits / 8;
  }
  return all;
}

Windows permute(const Instruction& one, std::uint32_t operand, const ByteWindow& window,
                bool keeps_sign) {
  const Operand& selector = one.operands[3];
  if (one.modifiers.prmt != ptx::PrmtMode::none || operand == 3 ||
      selector.kind != OperandKind::integer)
    return std::nullopt;
  const int base = operand == 1 ? 0 : 4;
  bool copies_sign = false;
  auto all = gather(window, one.operands[0].reg, 4, [&](int i) {
    const auto which = static_cast<int>(selector.bits >> 4 * i & 15);
    const bool chosen = which % 8 >= base && which % 8 < base + 4;
    copies_sign |= chosen && which >= 8;
    return chosen ? which % 8 - base : -1;
  });
  if (copies_sign && !keeps_sign) return std::nullopt;
  return all;
}

}  // namespace

ByteWindow ByteWindow::part(int begin, int end, std::uint32_t other, int to) const {
  const int low = std::max(first, begin), high = std::min(first + count, end);
  return {other, low - begin + to, high - low, byte + low - first};
}

Windows move_bytes(const ptx::Function& function, const Instruction& one, std::uint32_t operand,
                   const ByteWindow& window, bool keeps_sign) {
  const std::uint32_t target = one.operands[0].reg;
  const ptx::Type type = one.modifiers.type[0];
  const int bytes = ptx::bits(type) / 8;
  switch (one.row->handler) {
    case Handler::mov: return move(function, one, window);
    case Handler::cvt: {
      const ptx::Type from = one.modifiers.type[1];
      const bool widens = ptx::bits(type) > ptx::bits(from);
      if (ptx::class_id(from) != ptx::TypeClass::integer ||
          ptx::class_id(type) != ptx::TypeClass::integer || one.modifiers.sat ||
          (widens && is_signed(from) && !keeps_sign))
        return std::nullopt;
      return one_window(window.part(0, std::min(bytes, ptx::bits(from) / 8), target, 0));
    }
    case Handler::shl: {
      const auto by = bytes_in(one.operands[2]);
      if (!by || operand != 1) return std::nullopt;
      return one_window(window.part(0, bytes - *by, target, *by));
    }
    case Handler::shr: {
      const auto by = bytes_in(one.operands[2]);
      if (!by || operand != 1 || (is_signed(type) && window.first + window.count >= bytes))
        return std::nullopt;
      return one_window(window.part(*by, bytes, target, 0));
    }
    case Handler::and_: {
      const Operand& mask = one.operands[operand == 1 ? 2 : 1];
      if (mask.kind != OperandKind::integer) return one_window(window.part(0, bytes, target, 0));
      return gather(window, target, bytes,
                    [&](int i) { return (mask.bits >> 8 * i & 255) != 0 ? i : -1; });
    }
    case Handler::or_: return one_window(window.part(0, bytes, target, 0));
    case Handler::prmt: return permute(one, operand, window, keeps_sign);
    case Handler::bfi: {
      const auto at = bytes_in(one.operands[3]), count = bytes_in(one.operands[4]);
      if (operand == 2 && (!at || !count)) return one_window(window.part(0, bytes, target, 0));
      if (!at || !count || operand > 2) return std::nullopt;
      const int end = std::min(*at + *count, bytes);
      if (operand == 1) return one_window(window.part(0, end - *at, target, *at));
      return gather(window, target, bytes, [&](int i) { return i < *at || i >= end ? i : -1; });
    }
    case Handler::bfe: {
      const auto at = bytes_in(one.operands[2]), count = bytes_in(one.operands[3]);
      if (!at || !count || operand != 1 || is_signed(type)) return std::nullopt;
      return one_window(window.part(*at, std::min(*at + *count, bytes), target, 0));
    }
    default: return std::nullopt;
  }
}

}  // namespace kernwright::sim
