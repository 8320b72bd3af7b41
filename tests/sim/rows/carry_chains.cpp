// Chains as PTX and as arithmetic of the host.
#include "sim/rows/carry_chains.h"

#include "base/format.h"
#include "base/hash.h"
#include "record/recording.h"
#include "sim/rows/row_programs.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kernwright::sim {
namespace {

using Kind = ChainStep::Kind;
constexpr std::uint64_t kPreset = 0x5a5a;
constexpr unsigned kThreads = RowProgram::kThreads;

ChainStep first(Kind kind) { return {kind, false, true}; }
ChainStep middle(Kind kind) { return {kind, true, true}; }
ChainStep last(Kind kind) { return {kind, true, false}; }

std::uint64_t mask_of(const ChainStep& step) { return ~std::uint64_t{0} >> (64 - step.bits); }

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

/// The half of a product that the step takes.
std::uint64_t half_of_product(const ChainStep& step, std::uint64_t a, std::uint64_t b) {
  Wide product = static_cast<Wide>(a) * b;
  if (step.is_signed) {
    const int unused = 64 - step.bits;
    const auto wide = [unused](std::uint64_t x) {
      return static_cast<SignedWide>(static_cast<std::int64_t>(x << unused) >> unused);
    };
    product = static_cast<Wide>(wide(a) * wide(b));
  }
  return static_cast<std::uint64_t>(step.kind == Kind::mad_hi ? product >> step.bits : product) &
         mask_of(step);
}

/// One step; `carry` is CC.CF. Of a subtraction, GPUs have it say that nothing was borrowed, where
/// the manual has a borrow: subc sees no difference, addc does.
std::uint64_t compute(const ChainStep& step, std::span<const std::uint64_t> words, bool& carry) {
  const std::uint64_t mask = mask_of(step), a = words[0] & mask, b = words[1] & mask;
  const unsigned in = step.reads && carry ? 1 : 0;
  Wide exact = 0;
  if (step.kind == Kind::sub) {
    const bool borrows = step.reads && !carry;
    exact = static_cast<Wide>(a) + (mask - b) + (borrows ? 0 : 1);
  } else if (step.kind == Kind::add) {
    exact = static_cast<Wide>(a) + b + in;
  } else {
    exact = static_cast<Wide>(half_of_product(step, a, b)) + (words[2] & mask) + in;
  }
  if (step.sets) carry = (exact >> step.bits & 1) != 0;
  return static_cast<std::uint64_t>(exact) & mask;
}

bool is_chosen(unsigned thread) { return (thread * 0x9e3779b1u) >> 29 > 2; }

/// Step `i` of a chain, its result in %ri.
std::string step_text(const ChainStep& step, unsigned i, std::string_view guard) {
  if (step.kind == Kind::other) return "xor.b32 %drop, %w0, %w1;\nmul.lo.u32 %drop, %drop, 3;\n";
  const char kind = step.bits == 64 ? 'l' : 'w';
  std::string text = format("{}{} %d{}_{}", guard, step.opcode(), kind, i);
  const unsigned sources = step.kind == Kind::add || step.kind == Kind::sub ? 2 : 3;
  for (unsigned s = 0; s < sources; ++s) text += format(", %{}{}", kind, (i + s) % 4);
  return text + ";\n";
}

std::string variant_text(const CarryChain& chain, unsigned number, unsigned variant) {
  std::string text = format("// {}\nadd.cc.u32 %drop, %w1, %w3;\n", chain.name());
  for (unsigned i = 0; i < ChainProgram::kSteps; ++i)
    text += format("mov.b32 %dw_{0}, {1};\nmov.b64 %dl_{0}, {1};\n", i, kPreset);
  for (unsigned i = 0; i < chain.steps.size(); ++i) {
    const bool guarded = variant == 1 || (variant == 2 && i == 0);
    text += step_text(chain.steps[i], i, guarded ? "@%some " : "");
  }
  for (unsigned i = 0; i < chain.steps.size(); ++i) {
    if (chain.steps[i].bits == 32) text += format("cvt.u64.u32 %dl_{0}, %dw_{0};\n", i);
  }
  const unsigned at = (number * ChainProgram::kVariants + variant) * ChainProgram::kSteps;
  for (unsigned i = 0; i < ChainProgram::kSteps; ++i)
    text += format("st.global.u64 [%out+{}], %dl_{};\n", (at + i) * kThreads * 8, i);
  return text;
}

constexpr std::string_view kChainBegin =
    R"(.visible .entry chains_{}(.param .u64 in, .param .u64 out)
{{
.reg .pred %some;
.reg .b32 %w<4>, %dw_<4>, %t, %drop;
.reg .b64 %l<4>, %dl_<4>, %at, %out;
mov.u32 %t, %ctaid.x;
mov.u32 %w0, %ntid.x;
mov.u32 %w1, %tid.x;
mad.lo.u32 %t, %t, %w0, %w1;
ld.param.u64 %at, [in];
ld.param.u64 %out, [out];
mad.wide.u32 %at, %t, 32, %at;
mad.wide.u32 %out, %t, 8, %out;
ld.global.v2.u64 {{%l0, %l1}}, [%at];
ld.global.v2.u64 {{%l2, %l3}}, [%at+16];
cvt.u32.u64 %w0, %l0;
cvt.u32.u64 %w1, %l1;
cvt.u32.u64 %w2, %l2;
cvt.u32.u64 %w3, %l3;
mul.lo.u32 %drop, %t, 0x9e3779b1;
shr.u32 %drop, %drop, 29;
setp.gt.u32 %some, %drop, 2;
)";

}  // namespace

std::string ChainStep::opcode() const {
  if (kind == Kind::other) return "other";
  std::string text = kind == Kind::add ? "add" : kind == Kind::sub ? "sub" : "mad";
  if (reads) text += "c";
  if (kind == Kind::mad_lo) text += ".lo";
  if (kind == Kind::mad_hi) text += ".hi";
  if (sets) text += ".cc";
  return text + (is_signed ? ".s" : ".u") + std::to_string(bits);
}

std::string CarryChain::name() const {
  std::string text;
  for (const ChainStep& step : steps) text += (text.empty() ? "" : "+") + step.opcode();
  return text;
}

std::vector<CarryChain> carry_chains() {
  const auto add = Kind::add, sub = Kind::sub, lo = Kind::mad_lo, hi = Kind::mad_hi;
  const ChainStep other{Kind::other};
  const std::vector<std::vector<ChainStep>> patterns{
      {first(add), middle(add), last(add)},
      {first(add), middle(add), middle(add), last(add)},
      {first(sub), middle(sub), last(sub)},
      {first(sub), middle(sub), middle(sub), last(sub)},
      {first(lo), last(hi)},
      {first(lo), middle(hi), last(add)},
      {first(lo), middle(lo), middle(hi), last(hi)},
      {first(hi), middle(lo), last(hi)},
      {first(add), middle(lo), middle(hi), last(add)},
      {first(lo), middle(add), last(hi)},
      {first(add), other, last(add)},
      {first(sub), other, middle(sub), last(sub)},
      // A carry read as a borrow, and the other way round.
      {first(add), last(sub)},
      {first(sub), last(add)},
      {first(lo), middle(sub), last(add)},
      {first(sub), middle(hi), last(sub)},
  };
  std::vector<CarryChain> chains;
  for (const auto& pattern : patterns) {
    for (const int bits : {32, 64}) {
      for (const bool is_signed : {false, true}) {
        chains.push_back({pattern});
        for (ChainStep& step : chains.back().steps)
          step.bits = bits, step.is_signed = is_signed && step.kind != Kind::other;
      }
    }
  }
  // Steps of both widths.
  for (const Kind kind : {add, sub, lo}) {
    for (const int bits : {32, 64}) {
      CarryChain chain{{first(kind), middle(kind), last(kind)}};
      chain.steps[0].bits = bits;
      chain.steps[1].bits = 96 - bits;
      chain.steps[2].bits = bits;
      chains.push_back(chain);
    }
  }
  return chains;
}

std::string ChainProgram::ptx(std::string_view target) const {
  std::string text = format(".version 8.4\n.target {}\n.address_size 64\n", target);
  for (std::size_t i = 0; i < chains_.size(); ++i) {
    const auto number = static_cast<unsigned>(i % kChainsPerKernel);
    if (number == 0) text += format(fmt::runtime(kChainBegin), i / kChainsPerKernel);
    for (unsigned variant = 0; variant < kVariants; ++variant)
      text += variant_text(chains_[i], number, variant);
    if (number + 1 == kChainsPerKernel || i + 1 == chains_.size()) text += "ret;\n}\n";
  }
  return text;
}

std::vector<std::uint64_t> expected_words(const CarryChain& chain) {
  const std::vector<std::uint64_t> input = RowProgram::input();
  std::vector<std::uint64_t> words(std::size_t{ChainProgram::kVariants} * ChainProgram::kSteps *
                                   kThreads);
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    std::array<std::uint64_t, 6> sources{};
    for (unsigned i = 0; i < 6; ++i) sources[i] = input[std::size_t{thread} * 4 + i % 4];
    for (unsigned variant = 0; variant < ChainProgram::kVariants; ++variant) {
      const std::uint64_t low = 0xffffffff;
      bool carry = ((sources[1] & low) + (sources[3] & low)) >> 32 != 0;
      for (unsigned i = 0; i < ChainProgram::kSteps; ++i) {
        std::uint64_t& word =
            words[(std::size_t{variant} * ChainProgram::kSteps + i) * kThreads + thread];
        word = kPreset;
        if (i >= chain.steps.size() || chain.steps[i].kind == Kind::other) continue;
        const bool guarded = variant == 1 || (variant == 2 && i == 0);
        if (guarded && !is_chosen(thread)) continue;
        const std::array<std::uint64_t, 3> three{sources[i % 4], sources[(i + 1) % 4],
                                                 sources[(i + 2) % 4]};
        word = compute(chain.steps[i], three, carry);
      }
    }
  }
  return words;
}

std::vector<std::vector<std::uint64_t>> run_chains(const DriverApi& api, const void* image,
                                                   std::span<const CarryChain> chains) {
  constexpr std::size_t kWords =
      std::size_t{ChainProgram::kVariants} * ChainProgram::kSteps * kThreads;
  const std::vector<std::uint64_t> input = RowProgram::input();
  RecordedModule module(api, image, std::as_bytes(std::span(input)),
                        ChainProgram::kChainsPerKernel * kWords * sizeof(std::uint64_t));
  std::vector<std::vector<std::uint64_t>> result;
  for (std::size_t i = 0; i < chains.size(); i += ChainProgram::kChainsPerKernel) {
    const auto bytes = module.run(format("chains_{}", i / ChainProgram::kChainsPerKernel),
                                  kThreads / RowProgram::kBlock, RowProgram::kBlock);
    const std::size_t count =
        std::min<std::size_t>(chains.size() - i, ChainProgram::kChainsPerKernel);
    for (std::size_t c = 0; c < count; ++c) {
      result.emplace_back(kWords);
      std::memcpy(result.back().data(), bytes.data() + c * kWords * sizeof(std::uint64_t),
                  kWords * sizeof(std::uint64_t));
    }
  }
  return result;
}

std::string chain_line(std::span<const std::uint64_t> words) {
  return format("{:016x}", hash_bytes(std::as_bytes(words)).low);
}

}  // namespace kernwright::sim
