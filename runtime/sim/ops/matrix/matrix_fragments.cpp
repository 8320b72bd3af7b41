// wmma.load and wmma.store: matrices in memory to and from fragments.
//
// PTX leaves the layout of wmma fragments open. Here a fragment is the stack of the mma fragments
// of its 16-row (or 8-row) and 8-column parts (block_index in matrix_multiply.h); an f16 factor,
// which has more registers than it needs, holds its elements several times.
#include "sim/ops/matrix/matrix_multiply.h"
#include "sim/ops/memory/memory_transfer.h"

namespace kernwright::sim::KW_SIM_NS {
namespace {

using ptx::Layout;
using ptx::Type;

// Op::flags beside those of memory_plan.h.
constexpr std::uint32_t kStore = 1 << 7;
constexpr std::uint32_t kAcross = 1
                                  << 8;  ///< neighbours in a register are a stride apart in memory
constexpr std::uint32_t kSums = 1 << 9;  ///< c or d
constexpr std::uint32_t kScalar = 1 << 10;
constexpr int kBitsShift = 11;      ///< log2 of the bits of an element, 3 bits
constexpr int kOuterShift = 14;     ///< rows (b: columns) / 8, 3 bits
constexpr int kInnerShift = 17;     ///< columns (a, b: steps of k) in blocks, 3 bits
constexpr int kRegisterShift = 20;  ///< registers of the operand, 4 bits

/// What the flags say. "Outer" counts rows of a, c and d, columns of b; "inner" runs along a
/// register.
struct Shape {
  int bits, outer_blocks, inner_blocks, registers;
  bool sums, across;
  explicit Shape(std::uint32_t flags)
      : bits(1 << ((flags >> kBitsShift) & 7)),
        outer_blocks((flags >> kOuterShift) & 7),
        inner_blocks((flags >> kInnerShift) & 7),
        registers((flags >> kRegisterShift) & 15),
        sums((flags & kSums) != 0),
        across((flags & kAcross) != 0) {}
  int register_bytes() const { return bits == 64 ? 8 : 4; }
  /// Wide sums put neighbours into two registers, all else packs them into one.
  int registers_per_block() const { return sums && bits >= 32 ? 2 : 1; }
  int packed() const { return register_bytes() * 8 / bits; }  ///< elements of a register
  int block_columns() const { return 4 * packed() * registers_per_block(); }
  int rows() const { return outer_blocks * 8; }
  int columns() const { return inner_blocks * block_columns(); }
  int distinct() const { return outer_blocks * inner_blocks * registers_per_block(); }
};

/// Block of register `index` of the fragment: the inverse of block_index().
void block_of(const Shape& shape, int index, int& row, int& column) {
  if (shape.outer_blocks == 1) {
    row = 0;
    column = index;
  } else {
    row = index / 2 / shape.inner_blocks * 2 + index % 2;
    column = index / 2 % shape.inner_blocks;
  }
}

/// B's fragment stacks columns: block n * inner + k, with no pairing.
void block_of_columns(const Shape& shape, int index, int& row, int& column) {
  row = index / shape.inner_blocks;
  column = index % shape.inner_blocks;
}

constexpr std::uint32_t kColumns = 1 << 24;  ///< b

/// Calls f(lane, register's byte offset, memory's byte offset, bytes) for all pieces of register r.
template <typename F>
void each_piece(const Shape& shape, std::uint32_t flags, int r, std::int64_t stride, F f) {
  int row = 0, column = 0;
  const int index = r % shape.distinct(), per_block = shape.registers_per_block();
  if ((flags & kColumns) != 0) {
    block_of_columns(shape, index, row, column);
  } else {
    block_of(shape, index / per_block, row, column);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::int64_t outer = row * 8 + lane / 4;
    const int first =
        column * shape.block_columns() + lane % 4 * shape.packed() * per_block + index % per_block;
    if (!shape.across) {
      f(lane, 0, (outer * stride + first) * shape.bits / 8, shape.register_bytes());
      continue;
    }
    const int bytes = shape.bits / 8;
    for (int e = 0; e < shape.packed(); ++e)
      f(lane, e * bytes, ((first + e) * stride + outer) * bytes, bytes);
  }
}

/// Where the matrix begins. Whoever looks at accesses sees its lines, not what lies between them.
std::byte* locate_lines(const Op* op, Warp& warp, int lane, LaneAccess access, int lines,
                        std::uint64_t line_bytes, std::uint64_t stride_bytes) {
  access.size = line_bytes;
  std::byte* first = nullptr;
  for (int line = 0; line < lines; ++line, access.address += stride_bytes) {
    std::byte* const host = locate(op, warp, lane, access);
    if (host == nullptr) return nullptr;
    if (line == 0) first = host;
  }
  return first;
}

template <bool kMasked>
const Op* move_fragment(const Op* op, Warp& warp) {
  if (kMasked && !warp.converge(op, kEverybody)) return nullptr;
  const std::uint32_t flags = op->flags;
  const bool store = (flags & kStore) != 0;
  const Shape shape(flags);
  const int lane = std::countr_zero(warp.mask);  // all lanes give the same address and stride
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  const std::uint32_t stride_operand = store ? op->c : op->b;
  const bool has_stride = op->sources > (store ? 2 : 1);
  const int lines = shape.across ? shape.columns() : shape.rows();
  const int length = shape.across ? shape.rows() : shape.columns();
  const std::int64_t stride =
      has_stride ? warp.reg<std::uint32_t>(stride_operand)[lane] : static_cast<unsigned>(length);
  const auto span = static_cast<std::uint64_t>(((lines - 1) * stride + length) * shape.bits / 8);
  const std::uint64_t alignment = shape.bits < 8 ? 4 : static_cast<unsigned>(shape.bits) / 8;
  const LaneAccess access{space_of(op), store ? AccessKind::write : AccessKind::read, address[lane],
                          span, alignment};
  const bool is_watched = warp.worker->check != nullptr || warp.worker->launch->accesses != nullptr;
  const auto line_bytes = static_cast<std::uint64_t>(length * shape.bits / 8);
  const auto stride_bytes = static_cast<std::uint64_t>(stride * shape.bits / 8);
  std::byte* const memory =
      is_watched ? locate_lines(op, warp, lane, access, lines, line_bytes, stride_bytes)
                 : locate(op, warp, lane, access);
  if (memory == nullptr) return nullptr;
  const std::uint32_t operand = store ? op->b : op->d;
  const int registers = store ? shape.distinct() : shape.registers;
  for (int r = 0; r < registers; ++r) {
    std::byte* reg =
        warp.frame + ((flags & kScalar) != 0
                          ? operand
                          : warp.program->lists.data()[operand + static_cast<unsigned>(r)]);
    each_piece(shape, flags, r, stride, [&](int i, int within, std::int64_t at, int bytes) {
      std::byte* slot = reg + i * shape.register_bytes() + within;
      const auto size = static_cast<std::size_t>(bytes);
      std::memcpy(store ? memory + at : slot, store ? slot : memory + at, size);
    });
  }
  return op + 1;
}

enum Part : std::uint8_t { part_a = 1, part_b, part_c, part_d };

std::uint32_t shape_flags(const ptx::Instruction& instruction, unsigned registers) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const int bits = ptx::bits(modifiers.type[0]);
  const bool is_b = modifiers.selector == part_b, sums = modifiers.selector >= part_c;
  const ptx::Operand& operand = instruction.operands[registers];
  const bool vector = operand.kind == ptx::OperandKind::vector;
  const int packed = bits == 64 ? 1 : 32 / bits;
  const int k_blocks = modifiers.k / (4 * packed);
  const int outer = (is_b ? modifiers.n : modifiers.m) / 8;
  const int inner = sums ? modifiers.n / 8 : k_blocks;
  // A register runs along rows of a, c and d but along columns of b.
  const bool across = (modifiers.layout_a == Layout::col) != is_b;
  std::uint32_t flags = static_cast<std::uint32_t>(std::countr_zero(static_cast<unsigned>(bits)))
                        << kBitsShift;
  flags |= static_cast<std::uint32_t>(outer) << kOuterShift;
  flags |= static_cast<std::uint32_t>(inner) << kInnerShift;
  flags |= static_cast<std::uint32_t>(vector ? operand.elements.size() : 1) << kRegisterShift;
  if (is_b) flags |= kColumns;
  if (sums) flags |= kSums;
  if (across) flags |= kAcross;
  if (!vector) flags |= kScalar;
  return flags;
}

}  // namespace

OpPair select_matrix_fragments(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (instruction.row->handler != ptx::Handler::wmma || instruction.operands.size() < 2) return {};
  const bool store = modifiers.verb == ptx::Verb::store;
  if (!store && modifiers.verb != ptx::Verb::load) return {};
  std::uint32_t flags = memory_flags(modifiers, widths[store ? 0 : 1]) & (kSpaceBits | kAddress32);
  flags |= shape_flags(instruction, store ? 1 : 0);
  if (store) flags |= kStore;
  if (ptx::bits(modifiers.type[0]) < 8 && (flags & kAcross) != 0) return {};
  return {move_fragment<false>, move_fragment<true>, flags};
}

}  // namespace kernwright::sim::KW_SIM_NS
