// Spelling the rows of mma out, the kernels around them, and their factors.
#include "sim/rows/matrix_rows.h"

#include "base/format.h"
#include "base/hash.h"
#include "record/recording.h"
#include "sim/ptx/isa_table.h"
#include "sim/rows/row_programs.h"
#include "unit/sim/ops/matrix/matrix_reference.h"

#include <array>
#include <cstring>
#include <set>

namespace kernwright::sim {
namespace {

using ptx::Type;

/// The tables of the input: [table][register][thread], each word 64 bits. A takes the first eight
/// registers of its table, B the next, C the last.
enum Table : unsigned {
  half,
  bfloat,
  tf32,
  e4m3,
  e5m2,
  f64,
  any_bits,
  f32,
  metadata,       ///< two of four, in ascending order
  metadata_tf32,  ///< one of two
  table_count
};
constexpr unsigned kTableRegisters = 24;

Table table_of(Type type) {
  switch (type) {
    case Type::f16:
      return half;
    case Type::bf16:
      return bfloat;
    case Type::tf32:
      return tf32;
    case Type::e4m3:
      return e4m3;
    case Type::e5m2:
      return e5m2;
    case Type::f64:
      return f64;
    case Type::f32:
      return f32;
    default:
      return any_bits;
  }
}

bool is_sparse(const ptx::IsaRow& row) { return row.handler == ptx::Handler::mma_sp; }

/// Where thread 0 reads `reg` of a table.
std::size_t place(Table table, unsigned reg) {
  return (std::size_t{table} * kTableRegisters + reg) * MatrixProgram::kThreads * 8;
}

/// One operand's registers: declared, loaded from `table`, and named as a vector.
class Fragment {
 public:
  Fragment(char letter, const ptx::OperandSpec& spec) : letter_(letter), length_(spec.length) {
    type_ = spec.type == Type::f32 ? "f32" : spec.type == Type::f64 ? "f64" : "b32";
  }
  std::string declaration() const { return format(".reg .{} %{}<{}>;\n", type_, letter_, length_); }
  std::string loads(Table table, unsigned first) const {
    std::string text;
    for (unsigned i = 0; i < length_; ++i)
      text += format("ld.global.{} %{}{}, [%at+{}];\n", type_, letter_, i, place(table, first + i));
    return text;
  }
  std::string list() const {
    std::string text;
    for (unsigned i = 0; i < length_; ++i)
      text += format("{}%{}{}", i == 0 ? "{" : ", ", letter_, i);
    return text + "}";
  }
  std::string stores() const {
    std::string text;
    for (unsigned i = 0; i < length_; ++i) {
      const std::size_t at = std::size_t{i} * MatrixProgram::kThreads * 8;
      text += format("st.global.{} [%to+{}], %{}{};\n", type_, at, letter_, i);
    }
    return text;
  }

 private:
  char letter_;
  unsigned length_;
  std::string_view type_;
};

std::string kernel(const MatrixForm& form, std::size_t number) {
  ptx::Modifiers modifiers;
  ptx::match(form.opcode, modifiers);
  const auto& specs = ptx::row_operands(*form.row).specs;
  const Fragment d('d', specs[0]), a('a', specs[1]), b('b', specs[2]), c('c', specs[3]);
  std::string text = format(
      "// {}\n.visible .entry matrix_{}(.param .u64 in, .param .u64 out)\n{{\n.reg .b32 %t, %n, "
      "%e;\n.reg .b64 %at, %to;\n",
      form.name(), number);
  for (const Fragment* fragment : {&d, &a, &b, &c}) text += fragment->declaration();
  text +=
      "mov.u32 %t, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmul.lo.u32 %t, %t, %n;\nmov.u32 %n, %tid.x;\n"
      "add.u32 %t, %t, %n;\nld.param.u64 %at, [in];\nld.param.u64 %to, [out];\n"
      "mad.wide.u32 %at, %t, 8, %at;\nmad.wide.u32 %to, %t, 8, %to;\n";
  text += a.loads(table_of(modifiers.type[1]), 0) + b.loads(table_of(modifiers.type[2]), 8);
  text += c.loads(table_of(modifiers.type[3]), 16);
  std::string more;
  if (is_sparse(*form.row)) {
    const Table indices = modifiers.type[1] == Type::tf32 ? metadata_tf32 : metadata;
    text += format("ld.global.b32 %e, [%at+{}];\n", place(indices, 0));
    more = format(", %e, {}", form.selector);
  }
  text +=
      format("{} {}, {}, {}, {}{};\n", form.opcode, d.list(), a.list(), b.list(), c.list(), more);
  return text + d.stores() + "ret;\n}\n";
}

class Words {
 public:
  std::uint64_t bits() {  // SplitMix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  /// -4 to 3, which every format holds; 128 products of them fit f16 sums.
  double small() { return static_cast<double>(bits() % 8) - 4; }

  std::uint64_t next(Table table) {
    switch (table) {
      case half:
        return packed({"f16", 16});
      case bfloat:
        return packed({"bf16", 16});
      case tf32:
        return packed({"tf32", 32});
      case e4m3:
        return packed({"e4m3", 8});
      case e5m2:
        return packed({"e5m2", 8});
      case f64:
        return std::bit_cast<std::uint64_t>(small() * 0.5);
      case f32:
        return std::bit_cast<std::uint32_t>(static_cast<float>(small() * 0.25));
      case metadata:
        return chunks({0x4, 0x8, 0xc, 0x9, 0xd, 0xe});
      case metadata_tf32:
        return chunks({0x4, 0xe, 0x4, 0xe, 0x4, 0xe});
      default:
        return bits() & 0xffffffff;
    }
  }

 private:
  std::uint64_t packed(const ElementType& type) {
    std::uint64_t word = 0;
    for (int at = 0; at < 32; at += type.bits) word |= type.encode(small()) << at;
    return word;
  }
  std::uint64_t chunks(const std::array<unsigned, 6>& choices) {
    std::uint64_t word = 0;
    for (int at = 0; at < 32; at += 4) word |= std::uint64_t{choices[bits() % 6]} << at;
    return word;
  }

  std::uint64_t state_ = 1;
};

/// How many selectors a sparse form has: four lanes hold the metadata of 16 rows, or two or one.
int selectors_of(const std::string& opcode) {
  ptx::Modifiers modifiers;
  ptx::match(opcode, modifiers);
  const int size = ptx::bits(modifiers.type[1]);
  const int row_bits = size == 32 ? 2 * modifiers.k : size == 4 ? modifiers.k / 2 : modifiers.k;
  return 64 / row_bits;
}

}  // namespace

std::string MatrixForm::name() const {
  return selector < 0 ? opcode : format("{}, selector {}", opcode, selector);
}

std::vector<MatrixForm> matrix_forms() {
  std::vector<MatrixForm> forms;
  std::set<std::string> known;
  for (const ptx::IsaRow& row : ptx::isa_rows()) {
    if (row.stem != "mma") continue;
    for (std::string& opcode : spellings(row)) {
      if (!known.insert(opcode).second) continue;
      if (!is_sparse(row)) {
        forms.push_back({std::move(opcode), &row});
        continue;
      }
      const int count = selectors_of(opcode);
      for (int selector = 0; selector < count; ++selector)
        forms.push_back({opcode, &row, selector});
    }
  }
  return forms;
}

std::string MatrixProgram::ptx(std::span<const MatrixForm> forms, std::string_view target) {
  std::string result = format(".version 8.7\n.target {}\n.address_size 64\n", target);
  for (std::size_t i = 0; i < forms.size(); ++i) result += kernel(forms[i], i);
  return result;
}

std::vector<std::uint64_t> MatrixProgram::input() {
  Words words;
  std::vector<std::uint64_t> result;
  for (unsigned table = 0; table < table_count; ++table) {
    for (unsigned i = 0; i < kTableRegisters * kThreads; ++i)
      result.push_back(words.next(static_cast<Table>(table)));
  }
  return result;
}

std::vector<std::string> run_matrices(const DriverApi& api, const void* image,
                                      std::span<const MatrixForm> forms) {
  const std::vector<std::uint64_t> input = MatrixProgram::input();
  RecordedModule module(api, image, std::as_bytes(std::span(input)),
                        std::size_t{MatrixProgram::kResults} * MatrixProgram::kThreads * 8);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const auto output = module.run(format("matrix_{}", i), MatrixProgram::kThreads / 64, 64);
    lines.push_back(format("{:016x}", hash_bytes(output).low));
  }
  return lines;
}

}  // namespace kernwright::sim
