// Liveness with bit sets and a linear scan over live ranges.
#include "sim/ir/slots.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {
namespace {

/// One bit set per block, side by side.
class BitRows {
 public:
  BitRows(std::size_t rows, std::size_t bits) : words_((bits + 63) / 64), data_(rows * words_) {}
  std::uint64_t* row(std::size_t i) { return data_.data() + i * words_; }
  std::size_t words() const { return words_; }
  static void set(std::uint64_t* row, std::uint32_t bit) {
    row[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
  static bool test(const std::uint64_t* row, std::uint32_t bit) {
    return ((row[bit / 64] >> (bit % 64)) & 1) != 0;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> data_;
};

struct Liveness {
  BitRows in, out;
};

/// Marks what block `b` reads before it writes it (`use`) and what it writes for certain (`kill`).
void summarise(const Lowered& function, const LoweredBlock& block, std::uint64_t* use,
               std::uint64_t* kill) {
  for (const LoweredOp& op : block.ops) {
    each_register(function, op, [&](std::uint32_t reg, bool written) {
      if (!written) {
        if (!BitRows::test(kill, reg)) BitRows::set(use, reg);
      } else if (!op.guarded) {
        BitRows::set(kill, reg);
      } else if (!BitRows::test(kill, reg)) {
        BitRows::set(use, reg);  // the lanes whose guard is off keep the old value
      }
    });
  }
  if (block.condition.kind == Ref::Kind::reg && !BitRows::test(kill, block.condition.index)) {
    BitRows::set(use, block.condition.index);
  }
}

Liveness find_liveness(const Lowered& function, const std::vector<std::uint32_t>& order) {
  const std::size_t blocks = function.blocks.size(), bits = function.register_bytes.size();
  BitRows use(blocks, bits), kill(blocks, bits);
  Liveness live{BitRows(blocks, bits), BitRows(blocks, bits)};
  for (const std::uint32_t b : order) {
    summarise(function, function.blocks[b], use.row(b), kill.row(b));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      std::uint64_t* out = live.out.row(*it);
      std::uint64_t* in = live.in.row(*it);
      function.blocks[*it].successors([&](std::uint32_t to) {
        const std::uint64_t* row = live.in.row(to);
        for (std::size_t w = 0; w < live.in.words(); ++w) out[w] |= row[w];
      });
      const std::uint64_t *u = use.row(*it), *k = kill.row(*it);
      for (std::size_t w = 0; w < live.in.words(); ++w) {
        const std::uint64_t value = u[w] | (out[w] & ~k[w]);
        changed |= value != in[w];
        in[w] = value;
      }
    }
  }
  return live;
}

struct Range {
  std::uint32_t begin = ~0u, end = 0, reg = 0;
  void extend(std::uint32_t position) {
    begin = std::min(begin, position);
    end = std::max(end, position);
  }
};

template <typename F>
void each_bit(const std::uint64_t* row, std::size_t words, F f) {
  for (std::size_t w = 0; w < words; ++w) {
    for (std::uint64_t m = row[w]; m != 0; m &= m - 1) {
      f(static_cast<std::uint32_t>(w * 64 + static_cast<std::size_t>(std::countr_zero(m))));
    }
  }
}

/// One range per register from its first to its last position in the code order, loops included.
std::vector<Range> find_ranges(const Lowered& function, const std::vector<std::uint32_t>& order,
                               const std::vector<std::uint32_t>& kept, Liveness& live) {
  std::vector<Range> ranges(function.register_bytes.size());
  for (std::uint32_t i = 0; i < ranges.size(); ++i) ranges[i].reg = i;
  std::uint32_t position = 1;
  for (const std::uint32_t b : order) {
    const LoweredBlock& block = function.blocks[b];
    each_bit(live.in.row(b), live.in.words(), [&](std::uint32_t r) { ranges[r].extend(position); });
    for (const LoweredOp& op : block.ops) {
      ++position;
      each_register(function, op, [&](std::uint32_t r, bool) { ranges[r].extend(position); });
    }
    ++position;
    if (block.condition.kind == Ref::Kind::reg) ranges[block.condition.index].extend(position);
    each_bit(live.out.row(b), live.out.words(),
             [&](std::uint32_t r) { ranges[r].extend(position); });
    ++position;
  }
  for (const std::uint32_t r : kept) ranges[r].extend(position);
  std::erase_if(ranges, [](const Range& range) { return range.begin == ~0u; });
  std::sort(ranges.begin(), ranges.end(), [](const Range& x, const Range& y) {
    return x.begin != y.begin ? x.begin < y.begin : x.reg < y.reg;
  });
  return ranges;
}

/// Slots of one width: numbers of those in use by end of range, and the free ones.
class SlotPool {
 public:
  std::uint32_t take(const Range& range) {
    std::erase_if(busy_, [&](const auto& entry) {
      if (entry.first >= range.begin) return false;
      free_.push_back(entry.second);
      return true;
    });
    std::uint32_t slot = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    busy_.emplace_back(range.end, slot);
    return slot;
  }
  std::uint32_t count() const { return count_; }

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> busy_;
  std::vector<std::uint32_t> free_;
  std::uint32_t count_ = 0;
};

constexpr std::array<std::uint8_t, 5> kWidths{kPredicateWidth, 2, 4, 8, 16};

std::size_t width_class(std::uint8_t bytes) {
  std::size_t c = 0;
  while (c + 1 < kWidths.size() && kWidths[c] != bytes) ++c;
  return c;
}

std::uint32_t align_up(std::uint32_t value, std::uint32_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::uint32_t slot_bytes(std::uint8_t lane_bytes) noexcept {
  return lane_bytes == kPredicateWidth ? 4u : 32u * lane_bytes;
}

std::vector<std::uint32_t> live_at_entry(const Lowered& function,
                                         const std::vector<std::uint32_t>& order) {
  Liveness live = find_liveness(function, order);
  std::vector<std::uint32_t> registers;
  each_bit(live.in.row(order.front()), live.in.words(),
           [&](std::uint32_t r) { registers.push_back(r); });
  return registers;
}

FrameLayout assign_slots(const Lowered& function, const std::vector<std::uint32_t>& order,
                         const std::vector<std::uint32_t>& kept) {
  Liveness live = find_liveness(function, order);
  FrameLayout layout;
  each_bit(live.in.row(order.front()), live.in.words(),
           [&](std::uint32_t r) { layout.live_at_entry.push_back(r); });
  std::array<SlotPool, kWidths.size()> pools;
  const std::vector<Range> ranges = find_ranges(function, order, kept, live);
  std::vector<std::uint32_t> slots(function.register_bytes.size(), ~0u);
  for (const Range& range : ranges) {
    slots[range.reg] = pools[width_class(function.register_bytes[range.reg])].take(range);
  }
  std::array<std::uint32_t, kWidths.size()> base{};
  std::uint32_t end = kFrameHeaderBytes;
  for (std::size_t c = 0; c < kWidths.size(); ++c) {
    base[c] = end;
    end = align_up(end + pools[c].count() * slot_bytes(kWidths[c]), 64);
  }
  layout.registers.assign(slots.size(), kSinkOffset);
  for (const Range& range : ranges) {
    const std::uint8_t bytes = function.register_bytes[range.reg];
    layout.registers[range.reg] = base[width_class(bytes)] + slots[range.reg] * slot_bytes(bytes);
  }
  for (const ConstantValue& constant : function.constants) {
    layout.constants.push_back(end);
    end += std::max(slot_bytes(constant.bytes), 64u);
  }
  for (const LaneArea& area : function.areas) {
    layout.areas.push_back(end);
    end = align_up(end + area.stride * 32, 64);
  }
  layout.bytes = end;
  return layout;
}

}  // namespace kernwright::sim
