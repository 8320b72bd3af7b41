// The ISA table: its rows, the reading of their patterns, and the matcher.
#include "sim/ptx/isa.h"

#include "base/format.h"
#include "sim/ptx/isa_table.h"
#include "sim/ptx/modifier_sets.h"
#include "sim/ptx/parse/limits.h"

#include <array>
#include <stdexcept>
#include <unordered_map>

namespace kernwright::sim::ptx {
namespace {

// The rows in two parts: pointers to three texts each would cost the extension 60 KB, most of it
// for the loader.

/// A row's data besides its texts.
struct RowForm {
  Handler handler;
  std::int16_t min_sm;
  const char* note;
};

constexpr RowForm make_form(Handler handler, int min_sm = 0, const char* note = nullptr) {
  return {handler, static_cast<std::int16_t>(min_sm), note};
}

constexpr RowForm kForms[] = {
#define KW_ISA(stem, modifiers, operands, handler, ...) \
  make_form(Handler::handler __VA_OPT__(, ) __VA_ARGS__),
#include "sim/ptx/isa/all.inc"
#undef KW_ISA
};

/// Stem, modifiers and operands of all rows, each with a NUL behind it.
constexpr char kTexts[] =
#define KW_ISA(stem, modifiers, operands, ...) stem "\0" modifiers "\0" operands "\0"
#include "sim/ptx/isa/all.inc"
#undef KW_ISA
    ;

std::vector<IsaRow> make_rows() {
  std::vector<IsaRow> rows;
  const char* at = kTexts;
  const auto next_text = [&at] {
    const std::string_view text(at);
    at += text.size() + 1;
    return text;
  };
  for (const RowForm& form : kForms) {
    IsaRow& row = rows.emplace_back();
    row.stem = next_text();
    row.modifiers = next_text();
    row.operands = next_text();
    row.handler = form.handler;
    row.min_sm = form.min_sm;
    if (form.note != nullptr) row.note = form.note;
  }
  return rows;
}

constexpr bool kComputes[] = {
#define KW_HANDLER(name) false,
#define KW_COMPUTE(name) true,
#include "sim/ptx/handlers.inc"
};

[[noreturn]] void table_error(const IsaRow& row, std::string_view what) {
  throw std::logic_error(format("ISA table: {}{}: {}", row.stem, row.modifiers, what));
}

// One place of a pattern: the words allowed there.
struct Element {
  bool optional = false;
  std::vector<Word> words;

  const Word* find(std::string_view text) const noexcept {
    for (const Word& word : words) {
      if (word.text == text) return &word;
    }
    return nullptr;
  }
};

struct Row {
  const IsaRow* row = nullptr;
  bool any_order = false;  ///< ptxas takes the words of some instructions in any order
  std::vector<Element> elements;
  RowOperands operands;
};

Element read_element(const IsaRow& row, std::string_view text) {
  Element element;
  if (text.size() < 2 || text.front() != '.') table_error(row, "a modifier begins with a dot");
  text.remove_prefix(1);
  if (text.front() != '{') {
    const std::span<const Word> set = named_set(text);
    if (set.empty()) {
      element.words.push_back(literal_word(text));
    } else {
      element.words.assign(set.begin(), set.end());
    }
    return element;
  }
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    element.words.push_back(literal_word(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return element;
}

std::vector<Element> read_pattern(const IsaRow& row) {
  std::vector<Element> elements;
  std::string_view rest = row.modifiers;
  while (!rest.empty()) {
    const bool optional = rest.front() == '[';
    const std::size_t begin = optional ? 1 : 0;
    std::size_t end = 0;
    if (optional) {
      end = rest.find(']');
    } else if (rest.size() > 1 && rest[1] == '{') {
      end = rest.find('}') + 1;
    } else {
      end = rest.find_first_of(".[", 1);
    }
    if (end == std::string_view::npos) end = rest.size();
    elements.push_back(read_element(row, rest.substr(begin, end - begin)));
    elements.back().optional = optional;
    rest.remove_prefix(std::min(rest.size(), end + begin));
  }
  return elements;
}

void read_operand_flags(const IsaRow& row, std::string_view flags, OperandSpec& spec) {
  for (const char flag : flags) {
    switch (flag) {
      case '?': spec.optional = true; break;
      case '~': spec.wider = true; break;
      case '_': spec.sink = true; break;
      case '#': spec.constant_only = true; break;
      case '!': spec.register_only = true; break;
      case '^': spec.negatable = true; break;
      case '$': spec.symbol = true; break;
      default: table_error(row, "unknown operand flag");
    }
  }
}

void read_operand_type(const IsaRow& row, std::string_view type, OperandSpec& spec) {
  if (type == "w") {
    spec.type_from = OperandSpec::TypeFrom::widened;
  } else if (type.size() == 1 && type[0] >= '0' && type[0] <= '3') {
    spec.type_index = static_cast<std::uint8_t>(type[0] - '0');
  } else {
    spec.type_from = OperandSpec::TypeFrom::fixed;
    spec.type = type_from_name(type);
    if (spec.type == Type::none) table_error(row, "unknown operand type");
  }
}

OperandSpec read_operand(const IsaRow& row, std::string_view text) {
  OperandSpec spec;
  const std::size_t flags = std::min(text.size(), text.find_first_of("?~_#!^$"));
  read_operand_flags(row, text.substr(flags), spec);
  text = text.substr(0, flags);
  const std::size_t colon = text.find(':');
  std::string_view shape = text.substr(0, colon);
  using Shape = OperandSpec::Shape;
  if (shape.front() == '[') {
    shape = shape.substr(1, 1);
    spec.shape = shape == "t" ? Shape::tensor : shape == "x" ? Shape::texture : Shape::address;
  } else if (shape == "L") {
    spec.shape = Shape::label;
  } else if (shape.front() == '{') {
    const std::size_t star = shape.find('*');
    spec.shape = star == std::string_view::npos ? Shape::vector : Shape::fixed_vector;
    if (star != std::string_view::npos) {
      const char length = shape[star + 1];
      spec.length = length == 'w'   ? OperandSpec::kAccumulators
                    : length == 'c' ? OperandSpec::kOffsets
                    : length == 'g' ? OperandSpec::kAxes
                                    : static_cast<std::uint8_t>(length - '0');
    }
    spec.pair = shape.find('|') != std::string_view::npos;
    shape.remove_prefix(1);
  } else {
    spec.pair = shape.find('|') != std::string_view::npos;
  }
  spec.name = shape.front();
  const bool memory =
      spec.shape == Shape::address || spec.shape == Shape::tensor || spec.shape == Shape::texture;
  spec.destination = !memory && (spec.name == 'd' || spec.name == 'p');
  if (colon != std::string_view::npos) {
    read_operand_type(row, text.substr(colon + 1), spec);
  } else if (spec.name == 'p') {
    spec.type_from = OperandSpec::TypeFrom::fixed;
    spec.type = Type::pred;
  }
  return spec;
}

RowOperands read_operands(const IsaRow& row) {
  RowOperands operands;
  if (row.operands == "mov") operands.rule = OperandRule::mov;
  if (row.operands == "call") operands.rule = OperandRule::call;
  if (operands.rule != OperandRule::listed) return operands;
  std::string_view rest = row.operands;
  while (!rest.empty()) {
    const std::size_t space = std::min(rest.size(), rest.find(' '));
    operands.specs.push_back(read_operand(row, rest.substr(0, space)));
    operands.required += operands.specs.back().optional ? 0 : 1;
    rest.remove_prefix(std::min(rest.size(), space + 1));
  }
  return operands;
}

bool takes_any_order(std::string_view stem) {
  for (const std::string_view free : {"ld", "st", "atom", "red", "fence", "mbarrier", "wmma"}) {
    if (stem == free) return true;
  }
  return false;
}

struct Table {
  const std::vector<IsaRow> forms = make_rows();
  std::vector<Row> rows;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> by_stem;

  Table() {
    for (const IsaRow& row : forms) {
      by_stem[row.stem].push_back(static_cast<std::uint32_t>(rows.size()));
      rows.push_back({&row, takes_any_order(row.stem), read_pattern(row), read_operands(row)});
    }
  }
};

const Table& table() {
  static const Table* const instance = new Table;  // never destroyed: used by other threads at exit
  return *instance;
}

struct Words {
  std::array<std::string_view, kMaxModifiers> text;
  std::array<const Word*, kMaxModifiers> found{};
  std::size_t count = 0;
};

bool match_in_order(const Row& row, Words& words, std::size_t element, std::size_t word) {
  if (element == row.elements.size()) return word == words.count;
  if (word < words.count) {
    words.found[word] = row.elements[element].find(words.text[word]);
    const Word* found = words.found[word];
    if (found != nullptr && match_in_order(row, words, element + 1, word + 1)) {
      words.found[word] = found;
      return true;
    }
  }
  return row.elements[element].optional && match_in_order(row, words, element + 1, word);
}

/// ptxas checks the order of words of the same kind, types for example, and of little else; CUDA's
/// own headers and CUTLASS use orders not in the manual. Rows of Row::any_order have no order at
/// all.
bool match_any_order(const Row& row, Words& words) {
  std::uint64_t used = 0;
  std::array<std::size_t, kFields> next{};  // by field: elements before are no longer looked at
  for (std::size_t w = 0; w < words.count; ++w) {
    words.found[w] = nullptr;
    for (std::size_t e = 0; e < row.elements.size() && words.found[w] == nullptr; ++e) {
      if ((used >> e & 1) != 0) continue;
      const Word* const found = row.elements[e].find(words.text[w]);
      if (found == nullptr || e < next[static_cast<std::size_t>(found->field)]) continue;
      words.found[w] = found;
      const bool keeps =
          !row.any_order && found->field != Field::ignored && found->field != Field::xorsign_abs;
      if (keeps) next[static_cast<std::size_t>(found->field)] = e + 1;
      used |= std::uint64_t{1} << e;
    }
    if (words.found[w] == nullptr) return false;
  }
  for (std::size_t e = 0; e < row.elements.size(); ++e) {
    if (!row.elements[e].optional && (used >> e & 1) == 0) return false;
  }
  return true;
}

Type widened(Type type) {
  switch (type) {
    case Type::u16: return Type::u32;
    case Type::s16: return Type::s32;
    case Type::u32: return Type::u64;
    case Type::s32: return Type::s64;
    default: return Type::none;
  }
}

}  // namespace

std::span<const IsaRow> isa_rows() { return table().forms; }

Type operand_type(const OperandSpec& spec, const Modifiers& modifiers) noexcept {
  switch (spec.type_from) {
    case OperandSpec::TypeFrom::fixed: return spec.type;
    case OperandSpec::TypeFrom::widened: return widened(modifiers.type[0]);
    default: return modifiers.type[spec.type_index];
  }
}

const RowOperands& row_operands(const IsaRow& row) {
  return table().rows[static_cast<std::size_t>(&row - table().forms.data())].operands;
}

std::vector<const IsaRow*> match_all(std::string_view opcode, std::vector<Modifiers>& modifiers) {
  Words words;
  const std::size_t stem_end = std::min(opcode.size(), opcode.find('.'));
  const auto stem = table().by_stem.find(opcode.substr(0, stem_end));
  std::string_view rest = opcode.substr(stem_end);
  while (!rest.empty()) {
    if (words.count == words.text.size()) return {};
    rest.remove_prefix(1);
    const std::size_t end = std::min(rest.size(), rest.find('.'));
    words.text[words.count++] = rest.substr(0, end);
    rest.remove_prefix(end);
  }
  std::vector<const IsaRow*> matches;
  if (stem == table().by_stem.end()) return matches;
  const auto collect = [&](auto fits) {
    for (const std::uint32_t index : stem->second) {
      const Row& row = table().rows[index];
      if (!fits(row)) continue;
      Modifiers result;
      for (std::size_t i = 0; i < words.count; ++i) apply(*words.found[i], result);
      matches.push_back(row.row);
      modifiers.push_back(result);
    }
  };
  collect([&](const Row& row) {
    return match_in_order(row, words, 0, 0) || (row.any_order && match_any_order(row, words));
  });
  if (matches.empty()) collect([&](const Row& row) { return match_any_order(row, words); });
  return matches;
}

const IsaRow* match(std::string_view opcode, Modifiers& modifiers) {
  std::vector<Modifiers> results;
  const std::vector<const IsaRow*> matches = match_all(opcode, results);
  if (matches.empty()) return nullptr;
  modifiers = results.front();
  return matches.front();
}

bool computes(Handler handler) noexcept { return kComputes[static_cast<std::size_t>(handler)]; }

}  // namespace kernwright::sim::ptx
