// Modifier words and named sets.
#include "sim/ptx/modifier_sets.h"

#include "base/format.h"
#include "sim/ptx/type_names.h"

#include <array>
#include <bit>
#include <charconv>
#include <stdexcept>

namespace kernwright::sim::ptx {
namespace {

template <typename Enum>
constexpr Word word(std::string_view text, Field field, Enum value) {
  return {text, field, static_cast<std::uint16_t>(value)};
}

using enum Field;

constexpr std::array kCompareSigned{
    word("eq", compare, Compare::eq), word("ne", compare, Compare::ne),
    word("lt", compare, Compare::lt), word("le", compare, Compare::le),
    word("gt", compare, Compare::gt), word("ge", compare, Compare::ge)};
constexpr std::array kCompareUnsigned{
    word("eq", compare, Compare::eq), word("ne", compare, Compare::ne),
    word("lt", compare, Compare::lt), word("le", compare, Compare::le),
    word("gt", compare, Compare::gt), word("ge", compare, Compare::ge),
    word("lo", compare, Compare::lo), word("ls", compare, Compare::ls),
    word("hi", compare, Compare::hi), word("hs", compare, Compare::hs)};
constexpr std::array kCompareBits{word("eq", compare, Compare::eq),
                                  word("ne", compare, Compare::ne)};
constexpr std::array kCompareFloat{
    word("eq", compare, Compare::eq),   word("ne", compare, Compare::ne),
    word("lt", compare, Compare::lt),   word("le", compare, Compare::le),
    word("gt", compare, Compare::gt),   word("ge", compare, Compare::ge),
    word("equ", compare, Compare::equ), word("neu", compare, Compare::neu),
    word("ltu", compare, Compare::ltu), word("leu", compare, Compare::leu),
    word("gtu", compare, Compare::gtu), word("geu", compare, Compare::geu),
    word("num", compare, Compare::num), word("nan", compare, Compare::nan)};
constexpr std::array kBool{word("and", bool_op, BoolOp::and_), word("or", bool_op, BoolOp::or_),
                           word("xor", bool_op, BoolOp::xor_)};
constexpr std::array kBarReduce{word("and", bool_op, BoolOp::and_),
                                word("or", bool_op, BoolOp::or_)};
constexpr std::array kPopc{word("popc", bool_op, BoolOp::popc)};
constexpr std::array kRound{word("rn", rounding, Rounding::rn), word("rz", rounding, Rounding::rz),
                            word("rm", rounding, Rounding::rm), word("rp", rounding, Rounding::rp)};
constexpr std::array kRoundInteger{
    word("rni", rounding, Rounding::rni), word("rzi", rounding, Rounding::rzi),
    word("rmi", rounding, Rounding::rmi), word("rpi", rounding, Rounding::rpi)};
constexpr std::array kSpace{word("shared::cluster", space, Space::cluster),
                            word("global", space, Space::global),
                            word("shared", space, Space::shared),
                            word("shared::cta", space, Space::shared),
                            word("local", space, Space::local),
                            word("param", space, Space::param),
                            word("param::entry", space, Space::param),
                            word("param::func", space, Space::param),
                            word("const", space, Space::constant)};
constexpr std::array kStoreSpace{word("shared::cluster", space, Space::cluster),
                                 word("global", space, Space::global),
                                 word("shared", space, Space::shared),
                                 word("shared::cta", space, Space::shared),
                                 word("local", space, Space::local),
                                 word("param", space, Space::param),
                                 word("param::func", space, Space::param)};
constexpr std::array kSharedSpace{word("shared", space, Space::shared),
                                  word("shared::cta", space, Space::shared)};
#include "sim/ptx/hopper_sets.inc"
#include "sim/ptx/texture_sets.inc"
constexpr std::array kAtomSpace{
    word("global", space, Space::global), word("shared::cluster", space, Space::cluster),
    word("shared", space, Space::shared), word("shared::cta", space, Space::shared)};
constexpr std::array kAddressSpace{
    word("global", space, Space::global),      word("shared", space, Space::shared),
    word("shared::cta", space, Space::shared), word("shared::cluster", space, Space::cluster),
    word("local", space, Space::local),        word("const", space, Space::constant),
    word("param", space, Space::param),        word("param::entry", space, Space::param)};
constexpr std::array kScope{word("cta", scope, Scope::cta), word("cluster", scope, Scope::cluster),
                            word("gpu", scope, Scope::gpu), word("sys", scope, Scope::sys)};
constexpr std::array kMembarLevel{word("cta", scope, Scope::cta), word("gl", scope, Scope::gpu),
                                  word("sys", scope, Scope::sys)};
constexpr std::array kAtomSemantics{
    word("relaxed", semantics, Semantics::relaxed), word("acquire", semantics, Semantics::acquire),
    word("release", semantics, Semantics::release), word("acq_rel", semantics, Semantics::acq_rel)};
constexpr std::array kFenceSemantics{
    word("sc", semantics, Semantics::sc), word("acq_rel", semantics, Semantics::acq_rel),
    word("acquire", semantics, Semantics::acquire), word("release", semantics, Semantics::release)};
constexpr std::array kCacheLoad{word("ca", ignored, 0), word("cg", ignored, 0),
                                word("cs", ignored, 0), word("lu", ignored, 0),
                                word("cv", ignored, 0)};
constexpr std::array kCacheStore{word("wb", ignored, 0), word("cg", ignored, 0),
                                 word("cs", ignored, 0), word("wt", ignored, 0)};
constexpr std::array kEvictL1{
    word("L1::evict_normal", ignored, 0), word("L1::evict_unchanged", ignored, 0),
    word("L1::evict_first", ignored, 0), word("L1::evict_last", ignored, 0),
    word("L1::no_allocate", ignored, 0)};
constexpr std::array kEvictL2{word("L2::evict_normal", ignored, 0),
                              word("L2::evict_first", ignored, 0),
                              word("L2::evict_last", ignored, 0)};
constexpr std::array kHint{word("L2::cache_hint", cache_hint, 1)};
constexpr std::array kPrefetchSize{word("L2::64B", ignored, 0), word("L2::128B", ignored, 0),
                                   word("L2::256B", ignored, 0)};
constexpr std::array kVector{word("v2", vector, 2), word("v4", vector, 4), word("v8", vector, 8)};
constexpr std::array kMatrixCount{word("x1", vector, 1), word("x2", vector, 2),
                                  word("x4", vector, 4)};
constexpr std::array kPart{word("lo", part, MulPart::lo), word("hi", part, MulPart::hi)};
constexpr std::array kIntegerAtom{word("add", atom, AtomOp::add), word("min", atom, AtomOp::min),
                                  word("max", atom, AtomOp::max)};
constexpr std::array kBitAtom{word("and", atom, AtomOp::and_), word("or", atom, AtomOp::or_),
                              word("xor", atom, AtomOp::xor_)};
constexpr std::array kExchange{word("exch", atom, AtomOp::exch)};
constexpr std::array kCompareExchange{word("cas", atom, AtomOp::cas)};
constexpr std::array kAdd{word("add", atom, AtomOp::add)};
constexpr std::array kCount{word("inc", atom, AtomOp::inc), word("dec", atom, AtomOp::dec)};
constexpr std::array kMinMax{word("min", atom, AtomOp::min), word("max", atom, AtomOp::max)};
constexpr std::array kAddMinMax{word("add", atom, AtomOp::add), word("min", atom, AtomOp::min),
                                word("max", atom, AtomOp::max)};
constexpr std::array kShuffle{word("up", shfl, ShflMode::up), word("down", shfl, ShflMode::down),
                              word("bfly", shfl, ShflMode::bfly), word("idx", shfl, ShflMode::idx)};
constexpr std::array kVote{word("all", vote, VoteMode::all), word("any", vote, VoteMode::any),
                           word("uni", vote, VoteMode::uni)};
constexpr std::array kBallot{word("ballot", vote, VoteMode::ballot)};
constexpr std::array kPermute{word("f4e", prmt, PrmtMode::f4e), word("b4e", prmt, PrmtMode::b4e),
                              word("rc8", prmt, PrmtMode::rc8), word("ecl", prmt, PrmtMode::ecl),
                              word("ecr", prmt, PrmtMode::ecr), word("rc16", prmt, PrmtMode::rc16)};
constexpr std::array kLayout{word("row", layout, Layout::row), word("col", layout, Layout::col)};
constexpr std::array kTest{word("finite", selector, 1), word("infinite", selector, 2),
                           word("number", selector, 3), word("notanumber", selector, 4),
                           word("normal", selector, 5), word("subnormal", selector, 6)};
constexpr std::array kWait{word("test_wait", verb, Verb::test_wait),
                           word("try_wait", verb, Verb::try_wait)};
constexpr std::array kArrive{word("arrive", verb, Verb::arrive),
                             word("arrive_drop", verb, Verb::arrive_drop)};

constexpr std::array kSets{
    NamedSet{"CMP_S", kCompareSigned},
    NamedSet{"CMP_U", kCompareUnsigned},
    NamedSet{"CMP_B", kCompareBits},
    NamedSet{"CMP_F", kCompareFloat},
    NamedSet{"BOOL", kBool},
    NamedSet{"BAR_RED", kBarReduce},
    NamedSet{"POPC", kPopc},
    NamedSet{"RND", kRound},
    NamedSet{"RNDI", kRoundInteger},
    NamedSet{"SPACE", kSpace},
    NamedSet{"ST_SPACE", kStoreSpace},
    NamedSet{"SHARED", kSharedSpace},
    NamedSet{"ATOM_SPACE", kAtomSpace},
    NamedSet{"TO_SPACE", kAddressSpace},
    NamedSet{"SCOPE", kScope},
    NamedSet{"LEVEL", kMembarLevel},
    NamedSet{"SEM", kAtomSemantics},
    NamedSet{"FENCE_SEM", kFenceSemantics},
    NamedSet{"LD_CACHE", kCacheLoad},
    NamedSet{"ST_CACHE", kCacheStore},
    NamedSet{"L1_EVICT", kEvictL1},
    NamedSet{"L2_EVICT", kEvictL2},
    NamedSet{"HINT", kHint},
    NamedSet{"PREFETCH", kPrefetchSize},
    NamedSet{"VEC", kVector},
    NamedSet{"NUM", kMatrixCount},
    NamedSet{"PART", kPart},
    NamedSet{"ADD_MIN_MAX", kIntegerAtom},
    NamedSet{"ATOM_BIT", kBitAtom},
    NamedSet{"EXCH", kExchange},
    NamedSet{"CAS", kCompareExchange},
    NamedSet{"ADD", kAdd},
    NamedSet{"INC_DEC", kCount},
    NamedSet{"MIN_MAX", kMinMax},
#include "sim/ptx/hopper_named_sets.inc"
#include "sim/ptx/texture_named_sets.inc"
    NamedSet{"HALF_OP", kAddMinMax},
    NamedSet{"SHFL", kShuffle},
    NamedSet{"VOTE", kVote},
    NamedSet{"BALLOT", kBallot},
    NamedSet{"PRMT", kPermute},
    NamedSet{"LAYOUT", kLayout},
    NamedSet{"TEST", kTest},
    NamedSet{"WAIT", kWait},
    NamedSet{"ARRIVE", kArrive},
};

// Words that patterns spell out, besides types and shapes.
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
    word("rn", rounding, Rounding::rn),
    word("rz", rounding, Rounding::rz),
    word("rm", rounding, Rounding::rm),
    word("rp", rounding, Rounding::rp),
    word("rna", rounding, Rounding::rna),
    word("weak", semantics, Semantics::weak),
    word("volatile", semantics, Semantics::volatile_),
    word("relaxed", semantics, Semantics::relaxed),
    word("acquire", semantics, Semantics::acquire),
    word("release", semantics, Semantics::release),
    word("acq_rel", semantics, Semantics::acq_rel),
    word("sc", semantics, Semantics::sc),
    word("cta", scope, Scope::cta),
    word("cluster", scope, Scope::cluster),
    word("gpu", scope, Scope::gpu),
    word("sys", scope, Scope::sys),
    word("global", space, Space::global),
    word("shared", space, Space::shared),
    word("shared::cta", space, Space::shared),
    word("shared::cluster", space, Space::cluster),
    word("local", space, Space::local),
    word("const", space, Space::constant),
    word("row", layout, Layout::row),
    word("col", layout, Layout::col),
    word("x1", vector, 1),
    word("x2", vector, 2),
    word("x4", vector, 4),
    word("v2", vector, 2),
    word("v4", vector, 4),
    word("v8", vector, 8),
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
    word("popc", bool_op, BoolOp::popc),
    word("and", bool_op, BoolOp::and_),
    word("xor", bool_op, BoolOp::xor_),
    word("add", atom, AtomOp::add),
#include "sim/ptx/ignored_words.inc"
};

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

std::span<const NamedSet> named_sets() noexcept { return kSets; }

Word literal_word(std::string_view text) {
  if (const Type found = type_from_name(text); found != Type::none) {
    return word(text, Field::type, found);
  }
  for (const Word& candidate : kLiterals) {
    if (candidate.text == text) return candidate;
  }
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
