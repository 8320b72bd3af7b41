// Spelling the rows of the ISA table out, and the kernels around them.
#include "sim/rows/row_programs.h"

#include "base/format.h"
#include "base/hash.h"
#include "sim/ptx/isa_table.h"
#include "sim/ptx/modifier_sets.h"

#include <array>
#include <bit>
#include <cmath>
#include <set>

namespace kernwright::sim {
namespace {

using ptx::OperandSpec;
using ptx::Type;

/// The choices of each place of a pattern; an empty text where the place may be missing.
std::vector<std::vector<std::string>> places(std::string_view pattern) {
  std::vector<std::vector<std::string>> result;
  while (!pattern.empty()) {
    const bool optional = pattern.front() == '[';
    if (optional) pattern.remove_prefix(1);
    std::vector<std::string> choices;
    if (optional) choices.emplace_back();
    const bool braces = pattern.size() > 1 && pattern[1] == '{';
    const std::size_t end =
        std::min(pattern.size(), braces ? pattern.find('}') + 1 : pattern.find_first_of(".[]", 1));
    std::string_view words = pattern.substr(1, end - 1);
    if (braces) {
      for (words = words.substr(1, words.size() - 2); !words.empty();) {
        const std::size_t comma = std::min(words.size(), words.find(','));
        choices.push_back("." + std::string(words.substr(0, comma)));
        words.remove_prefix(std::min(words.size(), comma + 1));
      }
    } else if (const auto set = ptx::named_set(words); !set.empty()) {
      for (const ptx::Word& word : set) choices.push_back("." + std::string(word.text));
    } else {
      choices.push_back("." + std::string(words));
    }
    pattern.remove_prefix(std::min(pattern.size(), end + (optional ? 1 : 0)));
    result.push_back(std::move(choices));
  }
  return result;
}

bool computes_on_registers(const ptx::IsaRow& row) {
  // Barriers, addresses, waiting and the cluster's registers are no functions of their operands.
  static const std::set<std::string_view> others{
      "activemask", "alloca", "bar",     "barrier",  "cvta",       "elect",        "getctarank",
      "isspacep",   "mapa",   "pmevent", "mbarrier", "setmaxnreg", "createpolicy", "stacksave"};
  const ptx::RowOperands& operands = ptx::row_operands(row);
  if (operands.rule != ptx::OperandRule::listed || operands.specs.empty()) return false;
  if (!operands.specs.front().destination || others.contains(row.stem)) return false;
  for (const OperandSpec& spec : operands.specs) {
    if (spec.shape != OperandSpec::Shape::scalar) return false;
  }
  return true;
}

bool exchanges_in_warp(const ptx::IsaRow& row) {
  static const std::set<std::string_view> stems{"shfl", "vote", "match", "redux", "movmatrix"};
  return stems.contains(row.stem);
}

/// Registers come in these sizes; a byte lies in 32 bits.
int register_bits(Type type) {
  const int bits = ptx::bits(type);
  return bits == 8 || bits == 4 || bits == 2 ? 32 : bits;
}

/// Writes the instructions for one form.
class FormWriter {
 public:
  FormWriter(const RowForm& form, unsigned number) : form_(form), number_(number) {
    ptx::match(form.opcode, modifiers_);
  }

  std::string text() const {
    std::string result = format("// {}\n", form_.opcode);
    // A shuffle from a lane that takes no part has no defined result.
    const bool partly = !exchanges_in_warp(*form_.row);
    result += variant(0, false, false);
    if (partly) result += variant(1, true, false);
    result += variant(2, false, true);
    return result;
  }

 private:
  std::string variant(unsigned number, bool guarded, bool negate) const {
    const ptx::RowOperands& operands = ptx::row_operands(*form_.row);
    // The assembler of CUDA 13.0 loses the guard of these two: other lanes jump over them.
    const bool jumps = form_.row->stem == "testp" || form_.row->stem == "set";
    const std::string_view guard = guarded && !jumps ? "@%some " : "";
    const std::string label = format("after_{}_{}", form_.row->stem, number_);
    std::string list;
    for (const OperandSpec& spec : operands.specs) {
      if (spec.optional) break;
      list += (list.empty() ? "" : ", ") + operand(spec, negate);
    }
    std::string result = preset(operands.specs.front());
    if (reads_carry()) {
      const std::string_view sets = form_.row->stem == "subc" ? "sub" : "add";
      result += format("{}{}.cc.u32 %drop, %wb, %we;\n", guard, sets);
    }
    if (guarded && jumps) result += format("@!%some bra {};\n", label);
    result += format("{}{} {};\n", guard, form_.opcode, list);
    if (guarded && jumps) result += label + ":\n";
    result += collect(operands.specs.front());
    if (form_.opcode.find(".cc.") != std::string::npos) {  // what the carry flag holds now
      const std::string_view reads = form_.row->stem.starts_with("sub") ? "subc" : "addc";
      result += format("mov.u32 %carry, 7;\n{}{}.u32 %carry, 0, 0;\n", guard, reads);
      result += "cvt.u64.u32 %more, %carry;\nshl.b64 %more, %more, 1;\nxor.b64 %r, %r, %more;\n";
    }
    const unsigned at = (number_ * RowProgram::kVariants + number) * RowProgram::kThreads * 8;
    return result + format("st.global.u64 [%out+{}], %r;\n", at);
  }

  bool reads_carry() const {
    return form_.row->stem == "addc" || form_.row->stem == "subc" || form_.row->stem == "madc";
  }

  std::string operand(const OperandSpec& spec, bool negate) const {
    const Type type = ptx::operand_type(spec, modifiers_);
    if (spec.destination) {
      const std::string first = type == Type::pred ? "%pd" : format("%d{}", register_bits(type));
      // A pair writes a second predicate; where it may be left out, once it is.
      const bool alone = negate && form_.row->stem != "lop3";
      return spec.pair && !alone ? first + "|%pq" : first;
    }
    if (spec.constant_only) return negate ? "0x1b" : "0x96";
    if (exchanges_in_warp(*form_.row) && spec.name == 'e') return "-1";
    if (type == Type::pred) return format("{}%p{}", spec.negatable && negate ? "!" : "", spec.name);
    const char* kind = register_bits(type) == 64 ? "l" : register_bits(type) == 32 ? "w" : "h";
    return format("%{}{}", kind, spec.name);
  }

  /// Values that stay where the instruction does not run.
  std::string preset(const OperandSpec& spec) const {
    std::string result = "setp.ne.u32 %pd, %wc, %wc;\nsetp.eq.u32 %pq, %wc, %wc;\n";
    const Type type = ptx::operand_type(spec, modifiers_);
    if (type != Type::pred) {
      const int bits = register_bits(type);
      result += format("mov.b{0} %d{0}, 0x5a5a;\n", bits);
    }
    return result;
  }

  /// The results of one variant in %r.
  std::string collect(const OperandSpec& spec) const {
    const Type type = ptx::operand_type(spec, modifiers_);
    if (type == Type::pred) {
      return "selp.u64 %r, 1, 0, %pd;\nselp.u64 %more, 2, 0, %pq;\nor.b64 %r, %r, %more;\n";
    }
    const int bits = register_bits(type);
    std::string result =
        bits == 64 ? "mov.b64 %r, %d64;\n" : format("cvt.u64.u{0} %r, %d{0};\n", bits);
    if (spec.pair) {
      result += "selp.u64 %more, 0, 0x100000000, %pq;\nxor.b64 %r, %r, %more;\n";
    }
    return result;
  }

  const RowForm& form_;
  unsigned number_;
  ptx::Modifiers modifiers_;
};

constexpr std::string_view kBegin = R"(.visible .entry rows_{}(.param .u64 in, .param .u64 out)
{{
.reg .pred %pa, %pb, %pc, %pe, %pf, %pd, %pq, %some;
.reg .b16 %ha, %hb, %hc, %he, %d16;
.reg .b32 %wa, %wb, %wc, %we, %d32, %t, %drop, %carry;
.reg .b64 %la, %lb, %lc, %le, %d64, %at, %out, %r, %more;
mov.u32 %t, %ctaid.x;
mov.u32 %wa, %ntid.x;
mov.u32 %wb, %tid.x;
mad.lo.u32 %t, %t, %wa, %wb;
ld.param.u64 %at, [in];
ld.param.u64 %out, [out];
mad.wide.u32 %at, %t, 32, %at;
mad.wide.u32 %out, %t, 8, %out;
ld.global.v2.u64 {{%la, %lb}}, [%at];
ld.global.v2.u64 {{%lc, %le}}, [%at+16];
)";

std::string begin(std::size_t number) {
  std::string result = format(fmt::runtime(kBegin), number);
  for (const char name : {'a', 'b', 'c', 'e'}) {
    result += format("cvt.u32.u64 %w{0}, %l{0};\ncvt.u16.u64 %h{0}, %l{0};\n", name);
    result += format("and.b32 %drop, %w{0}, 1;\nsetp.ne.u32 %p{0}, %drop, 0;\n", name);
  }
  result += "setp.lt.s32 %pf, %wb, %we;\n";
  // Lanes in no regular pattern.
  result += "mul.lo.u32 %drop, %t, 0x9e3779b1;\nshr.u32 %drop, %drop, 29;\n";
  return result + "setp.gt.u32 %some, %drop, 2;\n";
}

std::uint64_t twice(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}

class Values {
 public:
  /// A word for the operands of thread `thread`: its kind of edge value, or anything.
  std::uint64_t next(unsigned thread) {
    switch (thread % 8) {
      case 0:
        return pick(kWide);
      case 1:
        return two([&] { return pick(kInteger); });
      case 2:
        return two([&] { return halves(kSmall); });
      case 3:
        return two([&] { return pick(kFloat); });
      case 4:
        return pick(kDouble);
      case 5:
        return two([&] { return halves(kHalf); });
      case 6:
        return random() % 70;
      default:
        return random();
    }
  }

 private:
  /// The lower half comes first: compilers differ in the order of a call's arguments.
  template <typename Next>
  static std::uint64_t two(Next next) {
    const std::uint32_t low = next();
    const std::uint32_t high = next();
    return twice(high, low);
  }
  template <typename T, std::size_t n>
  T pick(const std::array<T, n>& from) {
    return from[random() % n];
  }
  std::uint32_t halves(const std::array<std::uint16_t, 20>& from) {
    const std::uint32_t high = pick(from);
    return high << 16 | pick(from);
  }
  std::uint64_t random() {  // SplitMix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  static constexpr std::array<std::uint64_t, 12> kWide{0,
                                                       1,
                                                       ~0ull,
                                                       1ull << 63,
                                                       (1ull << 63) - 1,
                                                       1ull << 32,
                                                       (1ull << 32) - 1,
                                                       3,
                                                       0x8000000080000000,
                                                       0x7fffffff,
                                                       0xffffffff80000000,
                                                       0x0123456789abcdef};
  static constexpr std::array<std::uint32_t, 14> kInteger{
      0,          1,          2,      31,     32,   33,   0xffffffff,
      0x80000000, 0x7fffffff, 0xffff, 0x8000, 0xff, 0x80, 0x12345678};
  static constexpr std::array<std::uint16_t, 20> kSmall{
      0,      1,    2,    7,    8,      15,     16,    17,     0xffff, 0x8000,
      0x7fff, 0x7f, 0x80, 0xff, 0xff80, 0xff7f, 0x100, 0x1234, 0xfedc, 31};
  // Zeros, ones, halves for ties, denormals, the ends of the range and of the integers', NaNs.
  static constexpr std::array<std::uint32_t, 30> kFloat{
      0,          0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x3fc00000,
      0x40200000, 0xc0200000, 1,          0x80000001, 0x007fffff, 0x00800000,
      0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
      0xffc00000, 0x7f800001, 0x4f000000, 0xcf000000, 0x5f000000, 0x4effffff,
      0x477fe000, 0x477ff000, 0x33000000, 0x33000001, 0x38800000, 0x3f7fffff};
  static constexpr std::array<std::uint64_t, 26> kDouble{0,
                                                         0x8000000000000000,
                                                         0x3ff0000000000000,
                                                         0xbff0000000000000,
                                                         0x3fe0000000000000,
                                                         0x3ff8000000000000,
                                                         0x4004000000000000,
                                                         0xc004000000000000,
                                                         1,
                                                         0x800fffffffffffff,
                                                         0x0010000000000000,
                                                         0x7fefffffffffffff,
                                                         0xffefffffffffffff,
                                                         0x7ff0000000000000,
                                                         0xfff0000000000000,
                                                         0x7ff8000000000000,
                                                         0xfff8000000000001,
                                                         0x7ff0000000000001,
                                                         0x41e0000000000000,
                                                         0xc3e0000000000000,
                                                         0x43f0000000000000,
                                                         0x47efffffe0000000,
                                                         0x47effffff0000000,
                                                         0x36a0000000000000,
                                                         0x3690000000000001,
                                                         0x3fefffffffffffff};
  static constexpr std::array<std::uint16_t, 20> kHalf{
      0,      0x8000, 0x3c00, 0xbc00, 0x3800, 0x3e00, 0x4100, 0xc100, 1,      0x83ff,
      0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x7f80, 0x3f80, 0x7fc0};
  std::uint64_t state_ = 1;
};

/// Factors and summands whose result lies at the least normal number: below it with all its bits,
/// with 24 of them, or with those that a subnormal keeps. What .ftz flushes depends on which.
constexpr std::array<std::array<std::uint32_t, 3>, 16> kTiny{{
    {0x3f7fffff, 0x00800000, 0},
    {0x3f7fffff, 0x00800000, 0x80000000},
    {0x3f7ffffe, 0x00800001, 0},
    {0xbf7ffffe, 0x00800001, 0},
    {0x3f7ffffd, 0x00800002, 0x80000000},
    {0x3f7fffff, 0x01000000, 0x80800000},
    {0x3f7ffffe, 0x01000001, 0x80800000},
    {0xbf7ffffe, 0x01000001, 0x00800000},
    {0x3f7ffffe, 0x01800001, 0x81400000},
    {0x20000000, 0x20000000, 0},
    {0x1fffffff, 0x20000000, 0},
    {0x1ffffffe, 0x20000001, 0},
    {0x1ffffffe, 0xa0000001, 0x80000000},
    {0x1ffffffe, 0x20000001, 0x00000001},
    {0x1ffffffe, 0x20800001, 0x80800000},
    {0x3f800000, 0x00800001, 0x80800000},
}};

}  // namespace

bool RowForm::is_approximate() const {
  return row->note.find("bit-equal") != std::string_view::npos;
}

std::vector<std::string> spellings(const ptx::IsaRow& row) {
  std::vector<std::string> result{std::string(row.stem)};
  for (const std::vector<std::string>& choices : places(row.modifiers)) {
    std::vector<std::string> longer;
    for (const std::string& begin : result) {
      for (const std::string& choice : choices) longer.push_back(begin + choice);
    }
    result = std::move(longer);
  }
  return result;
}

std::vector<RowForm> row_forms() {
  std::vector<RowForm> forms;
  std::set<std::string> known;
  for (const ptx::IsaRow& row : ptx::isa_rows()) {
    if (!computes_on_registers(row)) continue;
    for (std::string& opcode : spellings(row)) {
      if (known.insert(opcode).second) forms.push_back({std::move(opcode), &row});
    }
  }
  return forms;
}

std::string RowProgram::ptx(std::string_view target) const {
  std::string result = format(".version 8.4\n.target {}\n.address_size 64\n", target);
  for (std::size_t i = 0; i < forms_.size(); ++i) {
    const auto number = static_cast<unsigned>(i % kFormsPerKernel);
    if (number == 0) result += begin(i / kFormsPerKernel);
    result += FormWriter(forms_[i], number).text();
    if (number + 1 == kFormsPerKernel || i + 1 == forms_.size()) result += "ret;\n}\n";
  }
  return result;
}

std::vector<std::uint64_t> RowProgram::input() {
  Values values;
  std::vector<std::uint64_t> result;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    for (std::size_t operand = 0; operand < 4; ++operand) {
      std::uint64_t word = values.next(thread);
      const auto& tiny = kTiny[thread / 16 % kTiny.size()];
      if (thread % 16 == 3 && operand < tiny.size()) word = twice(tiny[operand], tiny[operand]);
      result.push_back(word);
    }
  }
  return result;
}

std::uint64_t RowProgram::hash(const RowForm& form, std::span<const std::uint64_t> words) {
  ptx::Modifiers modifiers;
  ptx::match(form.opcode, modifiers);
  const std::string_view stem = form.row->stem;
  const bool sign_alone = (stem == "abs" || stem == "neg") && modifiers.type[0] == Type::f32;
  std::vector<std::uint64_t> all(words.begin(), words.end());
  for (std::uint64_t& word : all) {
    const bool is_nan = std::isnan(std::bit_cast<double>(word));
    if (modifiers.type[0] == Type::f64 && is_nan) word = 0x7fffffffffffffff;
    if (sign_alone && (word & 0x7fffffff) > 0x7f800000) word = 0x7fffffff;
  }
  return hash_bytes(std::as_bytes(std::span(all))).low;
}

}  // namespace kernwright::sim
