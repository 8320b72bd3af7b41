// Neighbouring loads and stores through one register and added constants.
#include "sim/check/flow/object_loads.h"

#include "sim/ptx/isa.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace kernwright::sim {

using ptx::Handler;
using ptx::Instruction;
using ptx::OperandKind;

namespace {

constexpr int kMostCopies = 4;
constexpr std::uint32_t kUsualAlignment = 8;
constexpr std::int64_t kMostBytes = 32;                    ///< of an access
constexpr std::int64_t kFarthest = std::int64_t{1} << 48;  ///< no object is so large

struct Access {
  std::uint32_t at = 0;             ///< instruction
  std::int64_t begin = 0, end = 0;  ///< counted from what a register holds
  std::uint32_t shape = 0;          ///< equal for accesses of one kind
  bool is_generic = false;
};

/// Accesses of a block through a register, in order of their begin.
struct Accesses {
  std::vector<Access> loads, stores;
};

/// The address of a load or store through a register, else null.
const ptx::Operand* find_address(const Instruction& one) {
  const Handler handler = one.row->handler;
  const bool loads = handler == Handler::ld || handler == Handler::ldu;
  if (!loads && handler != Handler::st) return nullptr;
  const ptx::Operand& address = one.operands[loads ? 1 : 0];
  return address.base == OperandKind::reg ? &address : nullptr;
}

/// By block and register.
std::map<std::pair<std::uint32_t, std::uint32_t>, Accesses> collect(const ptx::Function& function,
                                                                    const Outline& outline) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Accesses> all;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& one = function.body[i];
    const ptx::Operand* const address = find_address(one);
    if (address == nullptr) continue;
    std::uint32_t root = address->reg;
    std::int64_t begin = address->offset;
    for (int steps = 0; steps < kMostCopies && outline.writers[root].size() == 1; ++steps) {
      const Instruction& sum = function.body[outline.writers[root].front()];
      if (sum.row->handler != Handler::add || sum.guarded ||
          sum.operands[1].kind != OperandKind::reg || sum.operands[2].kind != OperandKind::integer)
        break;
      root = sum.operands[1].reg;
      begin = static_cast<std::int64_t>(static_cast<std::uint64_t>(begin) + sum.operands[2].bits);
    }
    if (begin < -kFarthest || begin > kFarthest) continue;
    const ptx::Modifiers& modifiers = one.modifiers;
    const std::int64_t bytes = ptx::bits(modifiers.type[0]) / 8 * modifiers.vector;
    const auto shape = static_cast<std::uint32_t>(modifiers.type[0]) << 8 | modifiers.vector;
    Accesses& accesses = all[{outline.blocks[i], root}];
    (one.row->handler == Handler::st ? accesses.stores : accesses.loads)
        .push_back({i, begin, begin + bytes, shape, modifiers.space == ptx::Space::generic});
  }
  const auto by_begin = [](const Access& a, const Access& b) { return a.begin < b.begin; };
  for (auto& entry : all) {
    std::sort(entry.second.loads.begin(), entry.second.loads.end(), by_begin);
    std::sort(entry.second.stores.begin(), entry.second.stores.end(), by_begin);
  }
  return all;
}

/// Whether some store of another kind writes all bytes of the load: from there the compiler knew
/// the other bytes.
bool is_written(const Access& load, const std::vector<Access>& stores) {
  const auto from = [&](std::int64_t begin) {
    return std::partition_point(stores.begin(), stores.end(),
                                [=](const Access& store) { return store.begin < begin; });
  };
  return std::any_of(from(load.begin - kMostBytes), from(load.begin + 1), [&](const Access& store) {
    return store.end >= load.end && store.shape != load.shape;
  });
}

}  // namespace

std::unordered_map<std::uint32_t, std::uint32_t> find_object_loads(const ptx::Function& function,
                                                                   const Outline& outline) {
  std::unordered_map<std::uint32_t, std::uint32_t> found;
  for (const auto& [place, accesses] : collect(function, outline)) {
    const std::vector<Access>& loads = accesses.loads;
    for (std::size_t first = 0; first < loads.size();) {
      // Neighbouring ones without a gap.
      std::int64_t end = loads[first].end;
      bool differ = false, several = false;
      std::size_t last = first + 1;
      for (; last < loads.size() && loads[last].begin <= end; ++last) {
        end = std::max(end, loads[last].end);
        differ |= loads[last].shape != loads[first].shape;
        several |= loads[last].begin != loads[first].begin;
      }
      for (; first < last; ++first) {
        const Access& load = loads[first];
        // Code without optimisation takes words throughout, bytes for calls, and knows no space.
        const bool is_byte = load.end - load.begin == 1;
        if (differ || is_written(load, accesses.stores)) {
          found[load.at] = kMostAlignment;
        } else if (several && load.is_generic) {
          found[load.at] = is_byte ? kMostAlignment : kUsualAlignment;
        }
      }
    }
  }
  return found;
}

}  // namespace kernwright::sim
