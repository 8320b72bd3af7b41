// The ISA table with parsed patterns, for the matcher and the verifier.
#pragma once

#include "sim/ptx/isa.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace kernwright::sim::ptx {

/// One operand of a row. The text form is
///   shape[:type][flags]
/// shape  d..., p...  destination register; p is a predicate, `p|q` may be a pair of predicates,
/// `d|p`
///                    may carry a predicate besides
///        a, b, c, e  source: register or constant
///        [a]         address;   L  branch label
///        {d}         vector of Modifiers::vector elements (no braces where that is 1)
///        {d*4}       braces around four elements; around one they may be missing
///        {d*w}       the accumulators of wgmma, as many as the shape has
///        {e*c}       an offset for each coordinate of a tensor but the first and the last
///        {e*g}       a number for each axis of a texture
///        {d*4}|p     a vector, and perhaps a predicate besides
///        [t]         address of a tensor map with coordinates
///        [x]         a texture or surface with coordinates
/// type   a PTX type; 0..3 the type of that place in the opcode; w twice as wide as type 0.
///        Without it: type 0, for p pred.
/// flags  ?  may be absent          ~  the register may be wider than the type
///        _  the sink is allowed    #  constant only     !  register only
///        ^  may be negated (!p)    $  may be a symbol
/// The words `mov` and `call` alone stand for rules of their own (verify.cpp).
struct OperandSpec {
  enum class Shape : std::uint8_t {
    scalar,
    address,
    tensor,
    texture,
    label,
    vector,
    fixed_vector,
  };
  enum class TypeFrom : std::uint8_t { opcode, widened, fixed };
  Shape shape = Shape::scalar;
  TypeFrom type_from = TypeFrom::opcode;
  Type type = Type::none;       ///< TypeFrom::fixed
  std::uint8_t type_index = 0;  ///< TypeFrom::opcode
  std::uint8_t length = 1;      ///< fixed_vector; or one of the next three
  static constexpr std::uint8_t kAccumulators = 0, kOffsets = 255, kAxes = 254;
  bool destination = false, pair = false, optional = false, wider = false, sink = false;
  bool constant_only = false, register_only = false, negatable = false, symbol = false;
  char name = 'a';
};

/// The rule of verify() for a row's operands.
enum class OperandRule : std::uint8_t { listed, mov, call };

struct RowOperands {
  OperandRule rule = OperandRule::listed;
  std::vector<OperandSpec> specs;
  std::size_t required = 0;  ///< specs that are not optional
};

/// The type of an operand beside an opcode with these modifiers.
Type operand_type(const OperandSpec& spec, const Modifiers& modifiers) noexcept;

const RowOperands& row_operands(const IsaRow& row);

/// Every row with this `opcode`, in table order, with the modifiers from each. Rows that differ
/// only in their operands share their opcodes.
std::vector<const IsaRow*> match_all(std::string_view opcode, std::vector<Modifiers>& modifiers);

}  // namespace kernwright::sim::ptx
