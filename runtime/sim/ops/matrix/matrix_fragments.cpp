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

/// Op::flags. "Outer" counts rows of a, c and d, columns of b; "inner" runs along a register.
struct Shape {
  unsigned memory : 7 = 0;  ///< the flags of memory_plan.h
  bool store : 1 = false;
  bool across : 1 = false;  ///< neighbours in a register are a stride apart in memory
  bool sums : 1 = false;    ///< c or d
  bool scalar : 1 = false;
  bool is_b : 1 = false;
  unsigned log2_bits : 3 = 0;  ///< of an element
  unsigned outer : 3 = 0;      ///< blocks of 8
  unsigned inner : 3 = 0;      ///< blocks: of 8 columns (c, d) or of steps of k
  unsigned operand : 4 = 0;    ///< registers
  unsigned unused : 7 = 0;

  int bits() const { return 1 << log2_bits; }
  int inner_blocks() const { return static_cast<int>(inner); }
  int register_bytes() const { return bits() == 64 ? 8 : 4; }
  /// Wide sums put neighbours into two registers, all else packs them into one.
  int registers_per_block() const { return sums && bits() >= 32 ? 2 : 1; }
  int packed() const { return register_bytes() * 8 / bits(); }  ///< elements of a register
  int block_columns() const { return 4 * packed() * registers_per_block(); }
  int rows() const { return static_cast<int>(outer) * 8; }
  int columns() const { return inner_blocks() * block_columns(); }
  int distinct() const { return static_cast<int>(outer) * inner_blocks() * registers_per_block(); }
};

/// Block of register `index` of the fragment: the inverse of block_index(). B's fragment stacks
/// columns: block n * inner + k, with no pairing.
void locate_block(const Shape& shape, int index, int& row, int& column) {
  const bool pairs = !shape.is_b && shape.outer > 1;
  const int stack = pairs ? index / 2 : index;
  row = stack / shape.inner_blocks();
  if (pairs) row = row * 2 + index % 2;
  column = stack % shape.inner_blocks();
}

/// Calls f(lane, register's byte offset, memory's byte offset, bytes) for all pieces of register r.
template <typename F>
void each_piece(const Shape& shape, int r, std::int64_t stride, F f) {
  int row = 0, column = 0;
  const int index = r % shape.distinct(), per_block = shape.registers_per_block();
  locate_block(shape, index / per_block, row, column);
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::int64_t outer = row * 8 + lane / 4;
    const int first =
        column * shape.block_columns() + lane % 4 * shape.packed() * per_block + index % per_block;
    if (!shape.across) {
      f(lane, 0, (outer * stride + first) * shape.bits() / 8, shape.register_bytes());
      continue;
    }
    const int bytes = shape.bits() / 8;
    for (int e = 0; e < shape.packed(); ++e)
      f(lane, e * bytes, ((first + e) * stride + outer) * bytes, bytes);
  }
}

/// Begin of the matrix. The checks see its lines, not the gaps between them.
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

const Op* move_fragment(const Op* op, Warp& warp) {
  const auto shape = std::bit_cast<Shape>(op->flags);
  const bool store = shape.store;
  const int lane = std::countr_zero(warp.mask);  // all lanes give the same address and stride
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  const std::uint32_t stride_operand = store ? op->c : op->b;
  const bool has_stride = op->sources > (store ? 2 : 1);
  const int lines = shape.across ? shape.columns() : shape.rows();
  const int length = shape.across ? shape.rows() : shape.columns();
  const std::int64_t stride =
      has_stride ? warp.reg<std::uint32_t>(stride_operand)[lane] : static_cast<unsigned>(length);
  const auto span = static_cast<std::uint64_t>(((lines - 1) * stride + length) * shape.bits() / 8);
  const std::uint64_t alignment = shape.bits() < 8 ? 4 : static_cast<unsigned>(shape.bits()) / 8;
  const LaneAccess access{op_space(op), store ? AccessKind::write : AccessKind::read, address[lane],
                          span, alignment};
  const bool is_watched = warp.worker->check != nullptr || warp.worker->launch->accesses != nullptr;
  const auto line_bytes = static_cast<std::uint64_t>(length * shape.bits() / 8);
  const auto stride_bytes = static_cast<std::uint64_t>(stride * shape.bits() / 8);
  std::byte* const memory =
      is_watched ? locate_lines(op, warp, lane, access, lines, line_bytes, stride_bytes)
                 : locate(op, warp, lane, access);
  if (memory == nullptr) return nullptr;
  const std::uint32_t operand = store ? op->b : op->d;
  const int registers = store ? shape.distinct() : static_cast<int>(shape.operand);
  for (int r = 0; r < registers; ++r) {
    std::byte* reg =
        warp.frame +
        (shape.scalar ? operand : warp.program->lists.data()[operand + static_cast<unsigned>(r)]);
    each_piece(shape, r, stride, [&](int i, int within, std::int64_t at, int bytes) {
      std::byte* slot = reg + i * shape.register_bytes() + within;
      const auto size = static_cast<std::size_t>(bytes);
      std::memcpy(store ? memory + at : slot, store ? slot : memory + at, size);
    });
  }
  return op + 1;
}

enum Part : std::uint8_t { part_a = 1, part_b, part_c, part_d };

Shape read_shape(const ptx::Instruction& instruction, unsigned registers) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  const auto bits = static_cast<unsigned>(ptx::bits(modifiers.type[0]));
  const ptx::Operand& operand = instruction.operands[registers];
  Shape shape;
  shape.is_b = modifiers.selector == part_b;
  shape.sums = modifiers.selector >= part_c;
  shape.scalar = operand.kind != ptx::OperandKind::vector;
  shape.log2_bits = static_cast<unsigned>(std::countr_zero(bits)) & 7;
  shape.outer = (shape.is_b ? modifiers.n : modifiers.m) / 8u & 7;
  shape.inner = (shape.sums ? modifiers.n / 8u : modifiers.k / (bits == 64 ? 4 : 128 / bits)) & 7;
  shape.operand = (shape.scalar ? 1 : static_cast<unsigned>(operand.elements.size())) & 15;
  // A register runs along rows of a, c and d but along columns of b.
  shape.across = (modifiers.layout_a == Layout::col) != shape.is_b;
  return shape;
}

}  // namespace

OpPair select_matrix_fragments(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  if (instruction.row->handler != ptx::Handler::wmma || instruction.operands.size() < 2) return {};
  const bool store = modifiers.verb == ptx::Verb::store;
  if (!store && modifiers.verb != ptx::Verb::load) return {};
  Shape shape = read_shape(instruction, store ? 1 : 0);
  if (ptx::bits(modifiers.type[0]) < 8 && shape.across) return {};
  shape.memory = memory_flags(modifiers, widths[store ? 0 : 1]) & (kSpaceBits | kAddress32);
  shape.store = store;
  return everybody_pair<move_fragment>(std::bit_cast<std::uint32_t>(shape));
}

}  // namespace kernwright::sim::KW_SIM_NS
