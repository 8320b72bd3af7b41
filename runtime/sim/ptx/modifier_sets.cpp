// Modifier words and named sets.
#include "sim/ptx/modifier_sets.h"

#include "base/format.h"

#include <array>
#include <bit>
#include <charconv>
#include <stdexcept>
#include <unordered_map>

namespace kernwright::sim::ptx {
namespace {

template <typename Enum>
constexpr Word word(std::string_view text, Field field, Enum value) {
  return {text, field, static_cast<std::uint16_t>(value)};
}

using enum Field;

/// .m64n<n>k<2^(power - 1)>, packed as parse_shape() does.
constexpr Word wgmma_shape(std::string_view text, unsigned n, unsigned power) {
  return {text, Field::shape, static_cast<std::uint16_t>(64 / 8 | n / 8 << 4 | power << 10)};
}
#define KW_WIDTH(n, k, power) wgmma_shape("m64n" #n "k" #k, n, power)
#define KW_WIDTHS(k, power)                                                                      \
  KW_WIDTH(8, k, power), KW_WIDTH(16, k, power), KW_WIDTH(24, k, power), KW_WIDTH(32, k, power), \
      KW_WIDTH(40, k, power), KW_WIDTH(48, k, power), KW_WIDTH(56, k, power),                    \
      KW_WIDTH(64, k, power), KW_WIDTH(72, k, power), KW_WIDTH(80, k, power),                    \
      KW_WIDTH(88, k, power), KW_WIDTH(96, k, power), KW_WIDTH(104, k, power),                   \
      KW_WIDTH(112, k, power), KW_WIDTH(120, k, power), KW_WIDTH(128, k, power),                 \
      KW_WIDTH(136, k, power), KW_WIDTH(144, k, power), KW_WIDTH(152, k, power),                 \
      KW_WIDTH(160, k, power), KW_WIDTH(168, k, power), KW_WIDTH(176, k, power),                 \
      KW_WIDTH(184, k, power), KW_WIDTH(192, k, power), KW_WIDTH(200, k, power),                 \
      KW_WIDTH(208, k, power), KW_WIDTH(216, k, power), KW_WIDTH(224, k, power),                 \
      KW_WIDTH(232, k, power), KW_WIDTH(240, k, power), KW_WIDTH(248, k, power),                 \
      KW_WIDTH(256, k, power)
#define KW_INTEGER_WIDTHS(k, power)                                                              \
  KW_WIDTH(8, k, power), KW_WIDTH(16, k, power), KW_WIDTH(24, k, power), KW_WIDTH(32, k, power), \
      KW_WIDTH(48, k, power), KW_WIDTH(64, k, power), KW_WIDTH(80, k, power),                    \
      KW_WIDTH(96, k, power), KW_WIDTH(112, k, power), KW_WIDTH(128, k, power),                  \
      KW_WIDTH(144, k, power), KW_WIDTH(160, k, power), KW_WIDTH(176, k, power),                 \
      KW_WIDTH(192, k, power), KW_WIDTH(208, k, power), KW_WIDTH(224, k, power),                 \
      KW_WIDTH(240, k, power), KW_WIDTH(256, k, power)

#define KW_SET(name, ...) constexpr std::array kSet_##name{__VA_ARGS__};
#include "sim/ptx/named_sets.inc"
#undef KW_SET
#undef KW_WIDTH
#undef KW_WIDTHS
#undef KW_INTEGER_WIDTHS

struct NamedSet {
  std::string_view name;
  std::span<const Word> words;
};

constexpr std::array kSets{
#define KW_SET(name, ...) NamedSet{#name, kSet_##name},
#include "sim/ptx/named_sets.inc"
#undef KW_SET
};

// Literal words of patterns, besides types, shapes, and words with the same meaning in a set.
constexpr std::array kLiterals{
#define KW_FLAG(member, text) word(text, Field::member, 1),
#include "sim/ptx/flags.inc"
#undef KW_FLAG
    word("NaN", nan, 1),
    word("abs", xorsign_abs, 1),
    word("shr7", selector, 7),
    word("shr15", selector, 15),
    word("wide", part, MulPart::wide),
    word("lo", part, MulPart::lo),
    word("hi", part, MulPart::hi),
    word("rna", rounding, Rounding::rna),
    word("weak", semantics, Semantics::weak),
    word("volatile", semantics, Semantics::volatile_),
    word("init", verb, Verb::init),
    word("inval", verb, Verb::inval),
    word("complete_tx", verb, Verb::complete_tx),
    word("pending_count", verb, Verb::pending_count),
    word("commit_group", verb, Verb::commit_group),
    word("wait_group", verb, Verb::wait_group),
    word("wait_all", verb, Verb::wait_all),
    word("load", verb, Verb::load),
    word("store", verb, Verb::store),
    word("mma", verb, Verb::mma),
    word("proxy", verb, Verb::proxy),
    word("warp", verb, Verb::warp_sync),
    word("mbarrier", verb, Verb::mbarrier_arrive),
    word("launch_dependents", verb, Verb::launch_dependents),
    word("wait", verb, Verb::wait),
    word("pack", verb, Verb::pack),
#include "sim/ptx/hopper_words.inc"
    word("a", selector, 1),
    word("b", selector, 2),
    word("c", selector, 3),
    word("d", selector, 4),
    word("L1", selector, 1),
    word("L2", selector, 2),
    word("sp", selector, 1),
#include "sim/ptx/ignored_words.inc"
};

/// By their texts. Of words with the same text the first counts.
std::unordered_map<std::string_view, Word> known_words() {
  std::unordered_map<std::string_view, Word> known;
  for (const Word& literal : kLiterals) known.emplace(literal.text, literal);
  for (const NamedSet& set : kSets) {
    for (const Word& member : set.words) known.emplace(member.text, member);
  }
  return known;
}

/// m16n8k16 and the like.
bool parse_shape(std::string_view text, std::uint16_t& packed) {
  unsigned m = 0, n = 0, k = 0;
  const auto number = [&](char letter, unsigned& value) {
    if (text.empty() || text.front() != letter) return false;
    const auto result = std::from_chars(text.data() + 1, text.data() + text.size(), value);
    if (result.ec != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
    return true;
  };
  if (!number('m', m) || !number('n', n)) return false;
  if (!text.empty() && !number('k', k)) return false;
  const auto fits = [](unsigned value, unsigned most) { return value % 8 == 0 && value <= most; };
  if (!text.empty() || !fits(m, 64) || !fits(n, 256) || (k & (k - 1)) != 0 || k > 256) return false;
  const auto power = static_cast<unsigned>(std::bit_width(k));  // k = 2^(power - 1), none is 0
  packed = static_cast<std::uint16_t>((m / 8) | (n / 8) << 4 | power << 10);
  return true;
}

}  // namespace

std::span<const Word> named_set(std::string_view name) noexcept {
  for (const NamedSet& set : kSets) {
    if (set.name == name) return set.words;
  }
  return {};
}

Word literal_word(std::string_view text) {
  if (const Type found = type_from_name(text); found != Type::none) {
    return word(text, Field::type, found);
  }
  static const auto& known = *new std::unordered_map<std::string_view, Word>(known_words());
  if (const auto found = known.find(text); found != known.end()) return found->second;
  std::uint16_t packed = 0;
  if (parse_shape(text, packed)) return {text, Field::shape, packed};
  throw std::logic_error(format("the ISA table uses the unknown modifier .{}", text));
}

namespace {

template <typename Enum>
void set(Enum& member, const Word& word) noexcept {
  member = static_cast<Enum>(word.value);
}

bool apply_flag(Field field, Modifiers& m) noexcept {
  switch (field) {
#define KW_FLAG(member, text) \
  case Field::member:         \
    return m.member = true;
#include "sim/ptx/flags.inc"
#undef KW_FLAG
    default: return false;
  }
}

}  // namespace

void apply(const Word& word, Modifiers& m) noexcept {
  switch (word.field) {
    case type:
      if (m.type_count < m.type.size()) m.type[m.type_count++] = static_cast<Type>(word.value);
      break;
    case rounding: set(m.rounding, word); break;
    case compare: set(m.compare, word); break;
    case bool_op:
      // mma's .and.popc: the operation in front counts.
      if (m.bool_op == BoolOp::none) set(m.bool_op, word);
      break;
    case part: set(m.part, word); break;
    case space: set(m.space == Space::generic ? m.space : m.space2, word); break;
    case semantics: set(m.semantics, word); break;
    case scope: set(m.scope, word); break;
    case atom: set(m.atom, word); break;
    case shfl: set(m.shfl, word); break;
    case vote: set(m.vote, word); break;
    case prmt: set(m.prmt, word); break;
    case vector: set(m.vector, word); break;
    case shape:
      m.m = static_cast<std::uint8_t>((word.value & 15) * 8);
      m.n = static_cast<std::uint16_t>((word.value >> 4 & 63) * 8);
      m.k = static_cast<std::uint16_t>((1u << (word.value >> 10)) >> 1);
      break;
    case layout: set(m.layout_a == Layout::none ? m.layout_a : m.layout_b, word); break;
    case verb: set(m.verb, word); break;
    case selector: set(m.selector, word); break;
    case geometry: set(m.geometry, word); break;
    case component: set(m.component, word); break;
    default: apply_flag(word.field, m); break;
  }
}

}  // namespace kernwright::sim::ptx
