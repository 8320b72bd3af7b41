// Checks an instruction's operands against its row of the ISA table.
#include "sim/ptx/isa_table.h"
#include "sim/ptx/parse/parser_state.h"
#include "sim/ptx/parse/selectors.h"

#include <utility>

namespace kernwright::sim::ptx {
namespace {

bool is_product(Handler handler) {
  return handler == Handler::mma || handler == Handler::mma_sp || handler == Handler::wmma ||
         handler == Handler::wgmma;
}

class Verifier {
 public:
  Verifier(Instruction& instruction, const Function& function)
      : instruction_(instruction), function_(function) {}

  std::string run() {
    const RowOperands& row = row_operands(*instruction_.row);
    if (row.rule == OperandRule::mov) return check_mov();
    if (row.rule == OperandRule::call) return check_call();
    const std::size_t count = instruction_.operands.size();
    if (count < row.required || count > row.specs.size()) {
      return format("takes {} operands, not {}", row.required, count);
    }
    std::size_t extra = count - row.required;
    std::size_t next = 0;
    for (const OperandSpec& spec : row.specs) {
      if (spec.optional && extra == 0) continue;
      extra -= spec.optional ? 1 : 0;
      Operand& operand = instruction_.operands[next++];
      const std::string wrong = check(operand, spec, operand_type(spec, instruction_.modifiers));
      if (!wrong.empty()) return format("operand {}: {}", next, wrong);
      reached_ = next;
    }
    ++reached_;
    return check_family();
  }

  std::size_t reached() const { return reached_; }

 private:
  std::string check(Operand& operand, const OperandSpec& spec, Type type) {
    using Shape = OperandSpec::Shape;
    switch (spec.shape) {
      case Shape::address:
        if (!operand.elements.empty()) return "an address takes no coordinates here";
        return operand.kind == OperandKind::address ? "" : "an address in brackets is needed";
      case Shape::tensor: return check_tensor(operand);
      case Shape::texture: return check_coordinates(operand);
      case Shape::label: return operand.kind == OperandKind::label ? "" : "a label is needed";
      case Shape::vector:
        if (instruction_.modifiers.vector == 1) strip_braces(operand);
        return check_vector(operand, spec, type, instruction_.modifiers.vector);
      case Shape::fixed_vector:
        if (spec.length == OperandSpec::kOffsets && operand.kind != OperandKind::vector)
          return "offsets in braces are needed";
        return check_vector(operand, spec, type, vector_length(spec));
      default: return check_scalar(operand, spec, type);
    }
  }

  /// A single value in braces is replaced by the value: handlers of scalars read no list.
  static void strip_braces(Operand& operand) {
    if (operand.kind != OperandKind::vector || operand.elements.size() != 1) return;
    const Operand only = operand.elements.front();
    operand = only;
  }

  std::size_t vector_length(const OperandSpec& spec) const {
    if (spec.length == OperandSpec::kOffsets) return instruction_.modifiers.vector - 2u;
    if (spec.length == OperandSpec::kAxes) return texture_axes();
    return spec.length == OperandSpec::kAccumulators ? accumulators() : spec.length;
  }

  /// Registers of wgmma's D.
  std::size_t accumulators() const {
    const Modifiers& m = instruction_.modifiers;
    return m.n / (bits(m.type[0]) == 16 ? 4u : 2u);
  }

  /// Gradients and offsets of a texture instruction; those of three axes have an unused fourth.
  std::size_t texture_axes() const {
    switch (instruction_.modifiers.geometry) {
      case Geometry::d1:
      case Geometry::a1d: return 1;
      case Geometry::d2:
      case Geometry::a2d: return 2;
      default: return 4;
    }
  }

  /// A layer's index is an integer whatever the other coordinates are; where there are four
  /// operands and fewer coordinates, nobody reads the last.
  std::string check_coordinates(Operand& operand) {
    const Modifiers& m = instruction_.modifiers;
    const Geometry shape = m.geometry;
    const bool layered = shape >= Geometry::a1d && shape != Geometry::cube;
    const std::size_t count = shape == Geometry::d1                             ? 1
                              : shape == Geometry::d2 || shape == Geometry::a1d ? 2
                                                                                : 4;
    if (operand.kind != OperandKind::address || operand.base != OperandKind::reg ||
        operand.offset != 0 || bits(function_.registers[operand.reg].type) != 64)
      return "a register of 64 bits with the handle of a texture or surface is needed";
    if (operand.elements.size() != count)
      return format("{} coordinates are needed, not {}", count, operand.elements.size());
    const Handler handler = instruction_.row->handler;
    const bool sampled = handler == Handler::tex || handler == Handler::tld4;
    const bool cube = shape == Geometry::cube || shape == Geometry::acube;
    if (cube && m.type[1] != Type::f32) return "a cubemap has floating-point coordinates";
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_index = !sampled || (layered && i == 0);
      std::string wrong =
          check_scalar(operand.elements[i], OperandSpec{}, is_index ? Type::b32 : m.type[1]);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_tensor(Operand& operand) {
    if (operand.kind != OperandKind::address) return "a tensor map in brackets is needed";
    if (operand.bare) return "coordinates in braces are needed";
    const std::size_t rank = instruction_.modifiers.vector;
    if (operand.elements.size() != rank) {
      return format("a tensor map and {} coordinates are needed, not {}", rank,
                    operand.elements.size());
    }
    for (Operand& element : operand.elements) {
      std::string wrong = check_scalar(element, OperandSpec{}, Type::b32);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_vector(Operand& operand, const OperandSpec& spec, Type type,
                           std::size_t length) {
    operand.type = type;
    operand.is_destination = spec.destination;
    if (operand.kind != OperandKind::vector) {
      if (length != 1) return format("a vector of {} elements is needed", length);
      return check_scalar(operand, spec, type);
    }
    if (operand.has_predicate && !spec.pair) return "no predicate stands beside a vector here";
    const std::size_t elements = operand.elements.size() - (operand.has_predicate ? 1 : 0);
    if (elements != length) {
      return format("a vector of {} elements is needed, not {}", length, elements);
    }
    if (operand.unbraced && is_product(instruction_.row->handler)) {
      return "the parts of a vector register are named in braces here";
    }
    // Any part of a write-only operand may be dropped.
    OperandSpec part = spec;
    part.sink |= spec.destination && instruction_.row->handler != Handler::wgmma;
    part.pair = false;
    for (std::size_t i = 0; i < operand.elements.size(); ++i) {
      Operand& element = operand.elements[i];
      const Type got = i == length ? Type::pred : type;
      // For loaded or stored vectors of floats ptxas checks only the size.
      const bool by_size = spec.shape == OperandSpec::Shape::vector && spec.wider &&
                           element.kind == OperandKind::reg && class_id(got) == TypeClass::floating;
      const Type as = !by_size ? got : bits(got) == 32 ? Type::b32 : Type::b64;
      std::string wrong = check_scalar(element, part, as);
      if (!wrong.empty()) return wrong;
      element.type = got;
    }
    return {};
  }

  std::string check_scalar(Operand& operand, const OperandSpec& spec, Type type) {
    operand.type = type;
    operand.is_destination = spec.destination;
    if (operand.negated && !spec.negatable) return "a predicate cannot be negated here";
    switch (operand.kind) {
      case OperandKind::reg:
        if (spec.constant_only) return "a constant is needed";
        return check_register(operand.reg, type, spec.wider);
      case OperandKind::reg_pair: return check_pair(operand, spec, type);
      case OperandKind::sink: return spec.destination && spec.sink ? "" : "_ is not allowed";
      default: break;
    }
    if (spec.destination) return "a destination must be a register";
    if (operand.kind == OperandKind::symbol) return spec.symbol ? "" : "a symbol is not allowed";
    if (spec.register_only) return "a register is needed";
    if (operand.kind == OperandKind::special) {
      if (spec.constant_only) return "a constant is needed";
      return check_special(operand, type, spec.wider);
    }
    return check_constant(operand, type);
  }

  std::string check_register(std::uint32_t index, Type type, bool wider) const {
    const Register& reg = function_.registers[index];
    if (fits(reg.type, type, wider)) return {};
    return format("register {} of type .{} does not fit .{}", full_name(reg), name(reg.type),
                  name(type));
  }

  // `p|q` of setp, `d|p` of shfl and match.
  std::string check_pair(Operand& operand, const OperandSpec& spec, Type type) const {
    if (!spec.pair) return "a pair of registers is not allowed";
    if (operand.reg != kNoRegister) {
      std::string wrong = check_register(operand.reg, type, spec.wider);
      if (!wrong.empty()) return wrong;
    }
    return check_register(operand.reg2, Type::pred, false);
  }

  std::string check_special(const Operand& operand, Type type, bool wider) const {
    const int width = special_bits(operand.special);
    const TypeClass kind = class_id(type);
    const bool one_bit = width == 1;
    const bool number = kind == TypeClass::integer || kind == TypeClass::untyped;
    if (one_bit ? kind == TypeClass::predicate : number && (bits(type) == width || wider))
      return {};
    return format("a special register of {} bits does not fit .{}", width, name(type));
  }

  // Converts a constant to the bits of its type, so that the decoder need not know the spelling.
  std::string check_constant(Operand& operand, Type type) const {
    const bool is_f32 = operand.kind == OperandKind::float32;
    const bool is_f64 = operand.kind == OperandKind::float64;
    if (!is_f32 && !is_f64 && operand.kind != OperandKind::integer) return "a value is needed";
    const Literal literal{is_f32 ? Type::f32 : is_f64 ? Type::f64 : Type::s64, operand.bits};
    const std::optional<std::uint64_t> pattern = literal_bits(literal, type);
    if (!pattern) return format("the constant is no .{}", name(type));
    operand.bits = *pattern;
    if (type == Type::pred) operand.bits = *pattern != 0 ? 1 : 0;
    if (type == Type::f32) operand.kind = OperandKind::float32;
    if (type == Type::f64) operand.kind = OperandKind::float64;
    return {};
  }

  // mov: scalar from anything, or packing and unpacking between a vector and a register.
  std::string check_mov() {
    if (instruction_.operands.size() != 2) return "takes 2 operands";
    const Type type = instruction_.modifiers.type[0];
    Operand& to = instruction_.operands[0];
    Operand& from = instruction_.operands[1];
    if (instruction_.modifiers.vector > 1) return check_vector_move(to, from, type);
    if (to.kind == OperandKind::vector && from.kind == OperandKind::vector) {
      return "moves a vector into a vector";
    }
    if (class_id(type) == TypeClass::untyped) {
      strip_braces(to);
      strip_braces(from);
    }
    OperandSpec spec;
    spec.destination = true;
    const bool unpacks = to.kind == OperandKind::vector;
    const bool packs = from.kind == OperandKind::vector;
    std::string wrong = unpacks ? check_parts(to, true, type) : check_scalar(to, spec, type);
    if (!wrong.empty()) return wrong;
    if (packs) return check_parts(from, false, type);
    if (from.kind == OperandKind::symbol) {
      from.type = type;
      const bool fits = bits(type) == 32 || bits(type) == 64;
      return fits ? "" : "an address has 64 bits, one of .shared or .local 32";
    }
    return check_mov_source(from, type);
  }

  // mov.v2 and mov.v4: part by part. A single value goes into the first one; the others are zero.
  std::string check_vector_move(Operand& to, Operand& from, Type type) {
    const std::size_t length = instruction_.modifiers.vector;
    if (length > 4 || bits(type) * static_cast<int>(length) > 128) {
      return "a vector of more than four parts or 128 bits";
    }
    if (from.kind != OperandKind::vector) {
      Operand zero;
      zero.kind =
          class_id(type) == TypeClass::floating ? OperandKind::float64 : OperandKind::integer;
      Operand widened;
      widened.kind = OperandKind::vector;
      widened.elements.assign(length, zero);
      widened.elements[0] = std::move(from);
      from = std::move(widened);
    }
    OperandSpec spec;
    spec.destination = true;
    std::string wrong = check_vector(to, spec, type, length);
    if (wrong.empty() && from.elements.size() != length) {
      return format("a vector of {} elements is needed, not {}", length, from.elements.size());
    }
    from.type = type;
    for (Operand& element : from.elements) {
      if (!wrong.empty()) return wrong;
      wrong = check_mov_source(element, type);
    }
    return wrong;
  }

  std::string check_mov_source(Operand& from, Type type) {
    OperandSpec spec;
    spec.wider = from.kind == OperandKind::special && bits(type) >= 16;
    if (spec.wider && special_bits(from.special) < bits(type)) {
      return "the special register is narrower than the type";
    }
    return check_scalar(from, spec, type);
  }

  std::string check_parts(Operand& vector, bool destination, Type type) {
    const std::size_t count = vector.elements.size();
    if (class_id(type) != TypeClass::untyped || (count != 2 && count != 4)) {
      return "packs 2 or 4 parts of an untyped (.b) value";
    }
    const int part_bits = bits(type) / static_cast<int>(count);
    const Type part = part_bits == 64   ? Type::b64
                      : part_bits == 32 ? Type::b32
                      : part_bits == 16 ? Type::b16
                      : part_bits == 8  ? Type::b8
                                        : Type::none;
    if (part == Type::none) return "the parts have no usual size";
    vector.type = type;
    vector.is_destination = destination;
    OperandSpec spec;
    spec.destination = destination;
    spec.sink = destination;
    for (Operand& element : vector.elements) {
      std::string wrong = check_scalar(element, spec, part);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  std::string check_call() {
    Operand& callee = instruction_.operands[1];
    if (callee.kind == OperandKind::reg) {
      callee.type = Type::b64;
      std::string wrong = check_register(callee.reg, Type::b64, false);
      if (!wrong.empty()) return wrong;
      if (instruction_.operands[3].kind != OperandKind::label) {
        return "an indirect call needs a prototype or a list of targets";
      }
    } else if (callee.kind != OperandKind::symbol || callee.offset != 0) {
      return "the callee is neither a function nor a register";
    }
    for (const std::size_t list : {0u, 2u}) {
      for (const Operand& element : instruction_.operands[list].elements) {
        if (!is_call_variable(element)) return "only .param variables of the body are passed";
      }
    }
    return {};
  }

  bool is_call_variable(const Operand& operand) const {
    return operand.kind == OperandKind::symbol && operand.offset == 0 &&
           operand.symbol_kind == SymbolKind::variable &&
           function_.variables[operand.symbol_index].space == Space::param;
  }

  // Video instructions on words: `d.b1, a, b, c` puts the result into a part of c.
  bool merges_properly() const {
    const std::string_view stem = instruction_.stem;
    if (stem.front() != 'v' || stem == "vote" || stem.back() == '2' || stem.back() == '4')
      return true;
    const bool part = unpack_selector(instruction_.selectors, 0).given;
    const bool merges = stem != "vmad" && instruction_.operands.size() == 4 &&
                        instruction_.modifiers.atom == AtomOp::none;
    return part == merges;
  }

  // The lanes of every four with a sparse A's metadata; a larger A needs more of them.
  std::string check_sparsity_selector(std::size_t operand) const {
    const bool small = bits(instruction_.modifiers.type[1]) <= 8;
    const bool warpgroup = instruction_.row->handler == Handler::wgmma;
    const std::size_t registers = warpgroup ? 4 : instruction_.operands[1].elements.size();
    const std::size_t choices = (small ? 4 : 8) / registers;
    const std::uint64_t selector = instruction_.operands[operand].bits;
    if (selector < choices) return {};
    return format("the sparsity selector {} must be {} here", selector,
                  choices == 1 ? "0" : format("0 to {}", choices - 1));
  }

  // wgmma: signs of A and B, and whether they are transposed, behind scale-d.
  std::string check_factors(std::size_t scale) const {
    for (std::size_t i = scale + 1; i < instruction_.operands.size(); ++i) {
      const auto value = static_cast<std::int32_t>(instruction_.operands[i].bits);
      const bool sign = i <= scale + 2;
      if (value == 1 || value == (sign ? -1 : 0)) continue;
      return format("operand {}: {} must be {} or 1", i + 1, value, sign ? "-1" : "0");
    }
    return {};
  }

  std::string check_product() const {
    if (instruction_.modifiers.verb != Verb::mma) return {};
    if (instruction_.modifiers.selector == 0) return check_factors(3);
    std::string wrong = check_sparsity_selector(4);
    return wrong.empty() ? check_factors(5) : wrong;
  }

  // Rules beyond the operand list of a row.
  std::string check_family() const {
    const Modifiers& m = instruction_.modifiers;
    const int width = bits(m.type[0]) * m.vector;
    if (instruction_.stem == "ld" || instruction_.stem == "st" || instruction_.stem == "ldu") {
      if (width > 256) return "a vector of more than 256 bits";
    }
    if (m.geometry != Geometry::none && width > 128) return "a vector of more than 128 bits";
    if (instruction_.stem == "lop3" && instruction_.operands.size() == 6 &&
        instruction_.operands[0].kind != OperandKind::reg_pair) {
      return "a lop3 that reduces needs a predicate beside its result";
    }
    if (instruction_.row->handler == Handler::mma_sp) return check_sparsity_selector(5);
    if (instruction_.row->handler == Handler::wgmma) return check_product();
    if (!merges_properly()) return "a part behind the result goes with a third source, unjoined";
    const bool hinted = instruction_.stem == "ld" || instruction_.stem == "st" ||
                        instruction_.stem == "atom" || instruction_.stem == "red";
    const bool has_policy = instruction_.operands.size() > row_operands(*instruction_.row).required;
    if (hinted && has_policy != m.cache_hint) return ".L2::cache_hint and a policy go together";
    const bool xorsign = instruction_.opcode.find(".xorsign") != std::string_view::npos;
    if (m.xorsign_abs && (!xorsign || instruction_.opcode.find(".abs") == std::string_view::npos)) {
      return ".xorsign and .abs go together";
    }
    return {};
  }

  Instruction& instruction_;
  const Function& function_;
  std::size_t reached_ = 0;
};

}  // namespace

Verdict verify(Instruction& instruction, const Function& function) {
  Verifier verifier(instruction, function);
  std::string wrong = verifier.run();
  return {std::move(wrong), verifier.reached()};
}

}  // namespace kernwright::sim::ptx
