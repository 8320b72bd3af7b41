// Detects the CPU and asks the op families of the best build.
#include "sim/code/dispatch.h"

#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "sim/code/fast_handlers.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

// Declarations and lists of the families for each instruction set. Wide ones have no build of their
// own for AVX-512, the rest the baseline build alone.
#define KW_SELECT(name) OpPair select_##name(const ptx::Instruction&, const OperandWidths&);
#define KW_DECLARE_ISA(isa)                                           \
  namespace kernwright::sim::isa_##isa {                              \
    OpPair internal_control(Internal which);                          \
    OpPair internal_move(Internal which);                             \
    OpFn select_fixed(const ptx::Instruction&, const OperandWidths&); \
    OpPair index_address(bool is_signed);                             \
    OpFn select_indexed(OpFn access);                                 \
    OpFn select_branching(OpFn compare);                              \
    OpFn select_stepping(OpFn compare);
#define KW_FAST_FAMILY KW_SELECT
#define KW_WIDE_FAMILY KW_SELECT
#define KW_FAMILY KW_SELECT
#define KW_FAST_SOURCE(name)
#define KW_WIDE_SOURCE(name)
KW_DECLARE_ISA(baseline)
#include "sim/ops/families.inc"
}
#if defined(__x86_64__) && !defined(KW_SIM_BASELINE_ONLY)
#undef KW_FAMILY
#define KW_FAMILY(name)
KW_DECLARE_ISA(avx2)
#include "sim/ops/families.inc"
}
#undef KW_WIDE_FAMILY
#define KW_WIDE_FAMILY(name)
KW_DECLARE_ISA(avx512)
#include "sim/ops/families.inc"
}
#endif
#undef KW_FAMILY
#undef KW_WIDE_FAMILY
#undef KW_FAST_FAMILY
#define KW_FAMILY(name) isa_baseline::select_##name,
#define KW_WIDE_FAMILY(name) KW_WIDE_ISA::select_##name,
#define KW_FAST_FAMILY(name) KW_FAST_ISA::select_##name,

namespace kernwright::sim {
namespace {

struct IsaBuild {
  const char* name;
  bool (*runs_here)();
  const Selector* families;
  std::size_t family_count;
  OpPair (*control)(Internal);
  OpPair (*move)(Internal);
  OpFn (*fixed)(const ptx::Instruction&, const OperandWidths&);
  OpPair (*index_address)(bool is_signed);
  OpFn (*indexed)(OpFn access);
  OpFn (*branching)(OpFn compare);
  OpFn (*stepping)(OpFn compare);
};

#define KW_WIDE_ISA isa_baseline
#define KW_FAST_ISA isa_baseline
constexpr Selector kBaseline[] = {
#include "sim/ops/families.inc"
};
#if defined(__x86_64__) && !defined(KW_SIM_BASELINE_ONLY)
#undef KW_WIDE_ISA
#undef KW_FAST_ISA
#define KW_WIDE_ISA isa_avx2
#define KW_FAST_ISA isa_avx2
constexpr Selector kAvx2[] = {
#include "sim/ops/families.inc"
};
#undef KW_FAST_ISA
#define KW_FAST_ISA isa_avx512
constexpr Selector kAvx512[] = {
#include "sim/ops/families.inc"
};

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}
#endif

/// Best first.
constexpr IsaBuild kBuilds[] = {
#if defined(__x86_64__) && !defined(KW_SIM_BASELINE_ONLY)
    {"avx512", has_avx512, kAvx512, std::size(kAvx512), isa_avx512::internal_control,
     isa_avx512::internal_move, isa_avx512::select_fixed, isa_avx512::index_address,
     isa_avx512::select_indexed, isa_avx512::select_branching, isa_avx512::select_stepping},
    {"avx2", has_avx2, kAvx2, std::size(kAvx2), isa_avx2::internal_control, isa_avx2::internal_move,
     isa_avx2::select_fixed, isa_avx2::index_address, isa_avx2::select_indexed,
     isa_avx2::select_branching, isa_avx2::select_stepping},
#endif
    {"baseline", [] { return true; }, kBaseline, std::size(kBaseline),
     isa_baseline::internal_control, isa_baseline::internal_move, isa_baseline::select_fixed,
     isa_baseline::index_address, isa_baseline::select_indexed, isa_baseline::select_branching,
     isa_baseline::select_stepping},
};

thread_local const IsaBuild* chosen = nullptr;  ///< by the IsaChoice that lives, if any

const IsaBuild& build() {
  if (chosen != nullptr) return *chosen;
  const std::string wanted = env_choice(Env::sim_isa);
  std::string known;
  for (const IsaBuild& candidate : kBuilds) {
    if (!candidate.runs_here()) continue;
    if (wanted == "auto" || wanted == candidate.name) return candidate;
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  throw InvalidArgument(format("{} is \"{}\", but this machine can run: auto, {}",
                               env_variable(Env::sim_isa).name, wanted, known));
}

}  // namespace

IsaChoice::IsaChoice() : before_(std::exchange(chosen, &build())) {}

IsaChoice::~IsaChoice() { chosen = static_cast<const IsaBuild*>(before_); }

const char* selected_isa() { return build().name; }

OpPair select_handlers(const ptx::Instruction& instruction, const OperandWidths& widths) {
  const IsaBuild& isa = build();
  for (std::size_t i = 0; i < isa.family_count; ++i) {
    const OpPair pair = isa.families[i](instruction, widths);
    if (pair.full != nullptr) return pair;
  }
  return {};
}

OpPair internal_handlers(Internal which) {
  const IsaBuild& isa = build();
  const OpPair pair = isa.control(which);
  return pair.full != nullptr ? pair : isa.move(which);
}

OpFn fixed_handler(const ptx::Instruction& instruction, const OperandWidths& widths) {
  return build().fixed(instruction, widths);
}

OpPair index_address_handlers(bool is_signed) { return build().index_address(is_signed); }

OpFn indexed_handler(OpFn access) { return build().indexed(access); }

OpFn branching_handler(OpFn compare) { return build().branching(compare); }

OpFn stepping_handler(OpFn compare) { return build().stepping(compare); }

std::uint32_t parameter_flags(ptx::Type type, std::uint8_t register_bytes) {
  const auto memory = static_cast<std::uint32_t>(std::max(1, ptx::bits(type) / 8));
  const bool is_signed = type == ptx::Type::s8 || type == ptx::Type::s16 ||
                         type == ptx::Type::s32 || type == ptx::Type::s64;
  return memory | std::uint32_t{register_bytes} << 8 | (is_signed ? 1u << 16 : 0u);
}

}  // namespace kernwright::sim
