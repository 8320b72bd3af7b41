// A parsed PTX module: plain data, names as views into the text it was parsed from.
#pragma once

#include "sim/ptx/types.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim::ptx {

struct IsaRow;  // ptx/isa.h

/// From the last .loc directive; for inlined code the innermost place.
struct SourceLine {
  std::int32_t file = 0;  ///< index into Module::files, 0 = none
  std::int32_t line = 0;
};

enum class OperandKind : std::uint8_t {
  none,
  reg,       ///< `reg`: index into Function::registers; `negated` for !p
  reg_pair,  ///< p|q: `reg` (kNoRegister for `_`) and `reg2`
  integer,   ///< `bits`: two's complement
  float32,   ///< 0f........ or a decimal in an f32 context: `bits` = IEEE bits
  float64,   ///< 0d................: `bits` = IEEE bits
  special,   ///< %tid.x and kin: `special`
  symbol,    ///< variable or function (mov address, call target): `symbol_kind` and
             ///< `symbol_index` say which one, plus `offset` bytes
  label,     ///< branch target: `label` index into Function::labels
  address,   ///< [base + offset]: `base` is reg, symbol or integer (then the address is `offset`)
  vector,    ///< {a, b, ...}: `elements`
  sink,      ///< _
  list,      ///< call's (a, b) lists: `elements`
};

enum class SpecialRegister : std::uint8_t {
  none,
#define KW_SPECIAL(name) name,
#define KW_AXES(name) name##_x, name##_y, name##_z,
#include "sim/ptx/special_registers.inc"
#undef KW_SPECIAL
#undef KW_AXES
  zero,    ///< %pm0, %envreg7, %tid.w and all others that read as zero
  zero64,  ///< %pm0_64
};

/// SpecialRegister::none when unknown; `text` as written, "%tid.x".
SpecialRegister special_from_name(std::string_view text) noexcept;
/// 1, 32 or 64.
int special_bits(SpecialRegister special) noexcept;

/// The kind of a symbol's target, which is the table for Operand::symbol_index. One name may belong
/// to several variables of a function (scopes), so use the index.
enum class SymbolKind : std::uint8_t {
  none,
  variable,   ///< Function::variables of the function around
  parameter,  ///< Function::params
  result,     ///< Function::returns
  global,     ///< Module::globals
  function,   ///< Module::functions
};

/// The absent register of `_|q`.
inline constexpr std::uint32_t kNoRegister = 0xffffffffu;

struct Operand {
  OperandKind kind = OperandKind::none;
  OperandKind base = OperandKind::none;  ///< of an address: reg, symbol or integer
  bool negated = false;
  bool is_destination = false;  ///< the instruction writes it (also set on a vector's elements)
  bool unbraced = false;        ///< a vector by its name alone
  bool has_predicate = false;   ///< of a vector: its last element is the predicate of {d...}|p
  bool bare = false;            ///< of an address: its one coordinate has no braces
  SymbolKind symbol_kind = SymbolKind::none;
  Type type = Type::none;  ///< as which the instruction reads or writes it; none = not typed
  SpecialRegister special = SpecialRegister::none;
  std::uint32_t reg = 0, reg2 = 0;
  std::uint32_t label = 0;
  std::uint32_t symbol_index = 0;
  std::uint64_t bits = 0;
  std::int64_t offset = 0;
  std::string_view symbol;
  std::vector<Operand> elements;
};

/// Operands stand in written order. `call` always has four: [0] list of results (may be empty),
/// [1] symbol or reg of the callee, [2] list of arguments (may be empty), [3] label of a
/// .callprototype or .calltargets, else none. `bra` has [0] label; `brx.idx` [0] index, [1] label
/// of .branchtargets.
struct Instruction {
  std::string_view opcode;  ///< whole, as written: "ld.global.nc.f32"
  std::string_view stem;    ///< "ld"
  Modifiers modifiers;
  const IsaRow* row = nullptr;
  bool guarded = false, guard_negated = false;
  std::uint32_t guard = 0;  ///< register index of the guard predicate
  /// .pragma "used_bytes_mask" before a load: a bit for each byte used by the program; 0 without
  /// one. Compilers widen loads over unused bytes.
  std::uint32_t used_bytes = 0;
  std::vector<Operand> operands;
  std::uint64_t selectors = 0;  ///< parts behind the operands of video instructions (selectors.h)
  std::int32_t ptx_line = 0;
  SourceLine source;
};

struct Register {
  std::string_view name;  ///< without the number for one of a range (%r<10>)
  Type type = Type::none;
  std::int32_t number = -1;  ///< of a range, else -1
  char part = '\0';          ///< of a vector register: x, y, z or w
};
/// "%r7", "q.x".
std::string full_name(const Register& reg);

/// One value of an initialiser: bits of the element, or the address of a symbol plus an offset.
struct InitialValue {
  std::uint64_t bits = 0;
  std::string_view symbol;
  std::int64_t offset = 0;
  bool generic = false;  ///< generic(symbol)
  std::uint8_t mask_shift = 0,
               mask_bits = 0;  ///< 0xFF(symbol)-style byte extraction; 0 = whole value
};

struct Variable {
  std::string_view name;
  Space space = Space::generic;
  Type type = Type::none;
  std::uint32_t alignment = 0;  ///< bytes; 0 = natural
  std::uint64_t count = 1;      ///< elements; 0 for an extern array without extent
  std::uint8_t vector = 1;
  bool is_extern = false, is_weak = false, is_array = false;
  std::vector<InitialValue> init;
  std::int32_t ptx_line = 0;
  std::uint64_t bytes() const noexcept { return count * vector * ((bits(type) + 7) / 8); }
};

struct Label {
  std::string_view name;
  std::uint32_t instruction = 0;              ///< index into Function::body
  std::vector<std::uint32_t> branch_targets;  ///< .branchtargets: labels
  std::vector<std::uint32_t> call_targets;    ///< .calltargets: indices into Module::functions
  bool is_prototype = false;                  ///< .callprototype: `returns` and `params` hold
  std::vector<Variable> returns, params;
};

struct Function {
  std::string_view name;
  bool is_entry = false, has_body = false, is_extern = false, is_weak = false, noreturn = false;
  std::vector<Variable> returns, params;
  std::vector<Register> registers;  ///< of all scopes; names may repeat
  std::vector<Variable> variables;  ///< .local, .shared, .param of the body
  std::vector<Label> labels;
  std::vector<Instruction> body;
  std::array<std::uint32_t, 3> max_threads{}, required_threads{};
  std::array<std::uint32_t, 3> required_cluster{};  ///< blocks; zeros: none asked for
  bool explicit_cluster = false;                    ///< only launched with a cluster size
  std::uint32_t min_blocks = 0, max_registers = 0;
  std::int32_t ptx_line = 0;
};

struct Module {
  std::string text;                ///< owns what the views point into
  std::deque<std::string> joined;  ///< opcodes that were written with spaces inside
  int version = 0;                 ///< 90 for .version 9.0
  std::string_view target;         ///< "sm_80"
  int address_size = 64;
  std::vector<std::string> files;  ///< of .file, by index; [0] is empty
  std::vector<Variable> globals;   ///< .global, .const, module-scope .shared
  std::vector<Function> functions;
};

}  // namespace kernwright::sim::ptx
