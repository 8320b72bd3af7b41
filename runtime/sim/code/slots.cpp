// Liveness with bit sets and a linear scan over live ranges.
#include "sim/code/passes.h"

#include "base/math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <utility>

namespace kernwright::sim {
namespace {

/// One bit set per block, side by side.
class BitRows {
 public:
  BitRows(std::size_t rows, std::size_t bits) : words_((bits + 63) / 64), data_(rows * words_) {}
  std::uint64_t* row(std::size_t i) { return data_.data() + i * words_; }
  const std::uint64_t* row(std::size_t i) const { return data_.data() + i * words_; }
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

/// Limits for bit sets and the walk over them, for modules of millions of blocks and registers.
/// Beyond them registers count as live everywhere; this only costs room in the frame.
constexpr std::size_t kMaxLivenessBits = std::size_t{1} << 28;
constexpr std::size_t kMaxLivenessSteps = std::size_t{1} << 30;

/// Registers live from one block to another, with the blocks.
struct Liveness {
  std::vector<std::uint32_t> registers;      ///< by bit
  std::vector<std::uint32_t> register_bits;  ///< by register; kNoBit for those of one block
  BitRows in{0, 0}, out{0, 0};               ///< per block
  bool everywhere = false;                   ///< its place is unknown

  static constexpr std::uint32_t kNoBit = ~std::uint32_t{0};
};

/// Calls reads(register) for registers possibly read by the block before their write, and
/// writes(register) for those written for certain. A register may come more than once.
template <typename Reads, typename Writes>
void summarise(const Lowered& function, const LoweredBlock& block, Reads reads, Writes writes) {
  for (const LoweredOp& op : block.ops) {
    each_register(function, op, [&](std::uint32_t reg, bool written) {
      // A guarded write keeps the old value in lanes with the guard off.
      written && !op.guarded ? writes(reg) : reads(reg);
    });
  }
  if (block.condition.kind == Ref::Kind::reg) reads(block.condition.index);
}

class LivenessFinder {
 public:
  LivenessFinder(const Lowered& function, const std::vector<std::uint32_t>& order)
      : function_(function), order_(order) {}

  Liveness find() {
    number_registers();
    const std::size_t blocks = function_.blocks.size(), bits = live_.registers.size();
    live_.everywhere = bits != 0 && blocks > kMaxLivenessBits / bits;
    if (live_.everywhere) return std::move(live_);
    live_.in = live_.out = BitRows(blocks, bits);
    use_ = kill_ = BitRows(blocks, bits);
    for (const std::uint32_t b : order_) fill(b);
    live_.everywhere = !spread();
    return std::move(live_);
  }

 private:
  void number_registers() {
    std::vector<std::uint32_t> written_in(function_.register_bytes.size(), ~0u);
    live_.register_bits.assign(written_in.size(), Liveness::kNoBit);
    for (const std::uint32_t b : order_) {
      const auto reads = [&](std::uint32_t reg) {
        if (written_in[reg] == b || live_.register_bits[reg] != Liveness::kNoBit) return;
        live_.register_bits[reg] = static_cast<std::uint32_t>(live_.registers.size());
        live_.registers.push_back(reg);
      };
      summarise(function_, function_.blocks[b], reads,
                [&](std::uint32_t reg) { written_in[reg] = b; });
    }
  }

  void fill(std::uint32_t block) {
    std::uint64_t *use = use_.row(block), *kill = kill_.row(block);
    const auto reads = [&](std::uint32_t reg) {
      const std::uint32_t bit = live_.register_bits[reg];
      if (bit != Liveness::kNoBit && !BitRows::test(kill, bit)) BitRows::set(use, bit);
    };
    const auto writes = [&](std::uint32_t reg) {
      const std::uint32_t bit = live_.register_bits[reg];
      if (bit != Liveness::kNoBit) BitRows::set(kill, bit);
    };
    summarise(function_, function_.blocks[block], reads, writes);
  }

  /// False if this takes too long.
  bool spread() {
    std::vector<std::vector<std::uint32_t>> before(function_.blocks.size());
    for (const std::uint32_t b : order_) {
      function_.blocks[b].successors([&](std::uint32_t to) { before[to].push_back(b); });
    }
    std::vector<bool> waits(function_.blocks.size(), false);
    for (const std::uint32_t b : order_) waits[b] = true;
    std::size_t steps = 0;
    for (bool any = true; any;) {
      any = false;
      for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
        if (!waits[*it]) continue;
        waits[*it] = false;
        steps += live_.in.words() + 1;
        if (!update(*it)) continue;
        if (steps > kMaxLivenessSteps) return false;
        any = true;
        for (const std::uint32_t from : before[*it]) waits[from] = true;
        steps += before[*it].size();
      }
    }
    return true;
  }

  /// Whether more registers live at the block's start.
  bool update(std::uint32_t block) {
    const std::size_t words = live_.in.words();
    std::uint64_t *out = live_.out.row(block), *in = live_.in.row(block);
    function_.blocks[block].successors([&](std::uint32_t to) {
      const std::uint64_t* row = live_.in.row(to);
      for (std::size_t w = 0; w < words; ++w) out[w] |= row[w];
    });
    const std::uint64_t *use = use_.row(block), *kill = kill_.row(block);
    bool changed = false;
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t value = use[w] | (out[w] & ~kill[w]);
      changed |= value != in[w];
      in[w] = value;
    }
    return changed;
  }

  const Lowered& function_;
  const std::vector<std::uint32_t>& order_;
  Liveness live_;
  BitRows use_{0, 0}, kill_{0, 0};
};

Liveness find_liveness(const Lowered& function, const std::vector<std::uint32_t>& order) {
  return LivenessFinder(function, order).find();
}

struct Range {
  std::uint32_t begin = ~0u, end = 0, reg = 0;
  void extend(std::uint32_t position) {
    begin = std::min(begin, position);
    end = std::max(end, position);
  }
};

/// Calls f(register) for each register live in `row`.
template <typename F>
void each_live(const Liveness& live, const std::uint64_t* row, F f) {
  for (std::size_t w = 0; w < live.in.words(); ++w) {
    for (std::uint64_t m = row[w]; m != 0; m &= m - 1)
      f(live.registers[w * 64 + static_cast<std::size_t>(std::countr_zero(m))]);
  }
}

std::vector<std::uint32_t> registers_at_entry(const Liveness& live,
                                              const std::vector<std::uint32_t>& order) {
  if (live.everywhere) return live.registers;
  std::vector<std::uint32_t> registers;
  each_live(live, live.in.row(order.front()), [&](std::uint32_t reg) { registers.push_back(reg); });
  std::sort(registers.begin(), registers.end());
  return registers;
}

/// One range per register from its first to its last position in the code order, loops included.
std::vector<Range> find_ranges(const Lowered& function, const std::vector<std::uint32_t>& order,
                               const std::vector<std::uint32_t>& kept, const Liveness& live) {
  std::vector<Range> ranges(function.register_bytes.size());
  for (std::uint32_t i = 0; i < ranges.size(); ++i) ranges[i].reg = i;
  std::uint32_t position = 1;
  const auto extend = [&](std::uint32_t r) { ranges[r].extend(position); };
  if (live.everywhere) std::for_each(live.registers.begin(), live.registers.end(), extend);
  for (const std::uint32_t b : order) {
    const LoweredBlock& block = function.blocks[b];
    if (!live.everywhere) each_live(live, live.in.row(b), extend);
    for (const LoweredOp& op : block.ops) {
      ++position;
      each_register(function, op, [&](std::uint32_t r, bool) { ranges[r].extend(position); });
    }
    ++position;
    if (block.condition.kind == Ref::Kind::reg) ranges[block.condition.index].extend(position);
    if (!live.everywhere) each_live(live, live.out.row(b), extend);
    ++position;
  }
  if (live.everywhere) std::for_each(live.registers.begin(), live.registers.end(), extend);
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
    while (!busy_.empty() && busy_.top().first < range.begin) {
      free_.push_back(busy_.top().second);
      busy_.pop();
    }
    std::uint32_t slot = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    busy_.emplace(range.end, slot);
    return slot;
  }
  std::uint32_t count() const { return count_; }

 private:
  using Busy = std::pair<std::uint32_t, std::uint32_t>;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
  std::vector<std::uint32_t> free_;
  std::uint32_t count_ = 0;
};

constexpr std::array<std::uint8_t, 5> kWidths{kPredicateWidth, 2, 4, 8, 16};

std::size_t width_class(std::uint8_t bytes) {
  std::size_t c = 0;
  while (c + 1 < kWidths.size() && kWidths[c] != bytes) ++c;
  return c;
}

/// Takes `bytes` off the rest of a frame. Returns where they begin.
std::uint32_t take_room(std::uint64_t& end, std::uint64_t bytes, std::uint64_t alignment) {
  const auto begin = static_cast<std::uint32_t>(end);
  end = std::min(round_up(end + bytes, alignment), kMaxFrameBytes + 1);
  return begin;
}

}  // namespace

std::uint32_t slot_bytes(std::uint8_t lane_bytes) noexcept {
  return lane_bytes == kPredicateWidth ? 4u : 32u * lane_bytes;
}

std::vector<std::uint32_t> live_at_entry(const Lowered& function,
                                         const std::vector<std::uint32_t>& order) {
  return registers_at_entry(find_liveness(function, order), order);
}

FrameLayout assign_slots(const Lowered& function, const std::vector<std::uint32_t>& order,
                         const std::vector<std::uint32_t>& kept) {
  const Liveness live = find_liveness(function, order);
  FrameLayout layout;
  layout.live_at_entry = registers_at_entry(live, order);
  std::array<SlotPool, kWidths.size()> pools;
  const std::vector<Range> ranges = find_ranges(function, order, kept, live);
  std::vector<std::uint32_t> slots(function.register_bytes.size(), ~0u);
  for (const Range& range : ranges) {
    slots[range.reg] = pools[width_class(function.register_bytes[range.reg])].take(range);
  }
  std::array<std::uint32_t, kWidths.size()> base{};
  std::uint64_t end = kFrameHeaderBytes;
  for (std::size_t c = 0; c < kWidths.size(); ++c) {
    base[c] = take_room(end, std::uint64_t{pools[c].count()} * slot_bytes(kWidths[c]), 64);
  }
  layout.registers.assign(slots.size(), kSinkOffset);
  for (const Range& range : ranges) {
    const std::uint8_t bytes = function.register_bytes[range.reg];
    layout.registers[range.reg] = base[width_class(bytes)] + slots[range.reg] * slot_bytes(bytes);
  }
  for (const ConstantValue& constant : function.constants) {
    layout.constants.push_back(take_room(end, std::max(slot_bytes(constant.bytes), 64u), 1));
  }
  for (const LaneArea& area : function.areas) {
    layout.areas.push_back(take_room(end, std::uint64_t{area.stride} * 32, 64));
  }
  layout.bytes = end;
  return layout;
}

}  // namespace kernwright::sim
