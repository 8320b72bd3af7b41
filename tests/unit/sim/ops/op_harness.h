// Runs one instruction of the conversion and half families on 32 lanes, in each instruction-set
// build that this CPU has.
#pragma once

#include "sim/code/dispatch.h"
#include "sim/exec/warp/warp.h"
#include "unit/base/environment_guard.h"
#include "unit/sim/ptx/ptx_fixture.h"

#include <array>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace kernwright::sim::testing {

using Lanes = std::array<std::uint64_t, kLanes>;

/// An instruction set, by the word that chooses its build.
struct IsaBuild {
  std::string name;
};

/// The builds that run on this CPU.
inline const std::vector<IsaBuild>& isa_builds() {
  static const std::vector<IsaBuild> builds = [] {
    std::vector<IsaBuild> list{{"baseline"}};
#if defined(__x86_64__) && !defined(KW_SIM_BASELINE_ONLY)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list.push_back({"avx2"});
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd")) {
      list.push_back({"avx512"});
    }
#endif
    return list;
  }();
  return builds;
}

/// One instruction, written with the registers of ptx::testing::kRegisters.
class OneInstruction {
 public:
  OneInstruction(const IsaBuild& build, std::string_view text)
      : module_(ptx::testing::parse_instruction(text)) {
    const ptx::Function& function = module_->functions[0];
    instruction_ = &function.body[0];
    for (std::size_t i = 0; i < instruction_->operands.size(); ++i) {
      const ptx::Operand& operand = instruction_->operands[i];
      const bool is_register =
          operand.kind == ptx::OperandKind::reg || operand.kind == ptx::OperandKind::reg_pair;
      const ptx::Type type = is_register ? function.registers[operand.reg].type : operand.type;
      widths_.bytes[i] = static_cast<std::uint8_t>(type == ptx::Type::pred ? kPredicateWidth
                                                                           : ptx::bits(type) / 8);
    }
    const test::EnvironmentGuard isa("KERNWRIGHT_SIM_ISA", build.name.c_str());
    pair_ = select_handlers(*instruction_, widths_);
  }

  bool known() const { return pair_.full != nullptr && pair_.masked != nullptr; }

  /// Lanes of the destination, which held `before`. A predicate is one word: lane 0; q in lane 1.
  Lanes run(const std::vector<Lanes>& sources, std::uint32_t mask = kAllLanes,
            std::uint64_t before = 0) {
    Warp warp;
    warp.frame = frame_.bytes;
    warp.mask = mask;
    for (int i = 0; i < kLanes; ++i) {
      warp.lane_mask[static_cast<std::size_t>(i)] = (mask >> i & 1) != 0 ? ~0u : 0;
    }
    Op op;
    op.flags = pair_.flags;
    op.d = slot(0);
    op.d2 = slot(7);
    std::uint32_t* const fields[] = {&op.a, &op.b, &op.c, &op.e};
    for (std::size_t i = 0; i < sources.size(); ++i) {
      *fields[i] = slot(i + 1);
      fill(slot(i + 1), widths_[i + 1], sources[i]);
    }
    Lanes old{};
    old.fill(before);
    fill(slot(0), widths_[0], old);
    fill(slot(7), kPredicateWidth, old);
    const Op* next = (mask == kAllLanes ? pair_.full : pair_.masked)(&op, warp);
    CHECK(next == &op + 1);
    Lanes result = read(slot(0), widths_[0]);
    if (widths_[0] == kPredicateWidth) result[1] = warp.pred(slot(7));
    return result;
  }

 private:
  struct alignas(64) Frame {
    std::byte bytes[8 * 1024];
  };
  static std::uint32_t slot(std::size_t index) { return static_cast<std::uint32_t>(index * 1024); }

  void fill(std::uint32_t offset, int bytes, const Lanes& values) {
    if (bytes == kPredicateWidth) {
      const auto word = static_cast<std::uint32_t>(values[0]);
      std::memcpy(frame_.bytes + offset, &word, 4);
      return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(frame_.bytes + offset + i * static_cast<std::size_t>(bytes), &values[i],
                  static_cast<std::size_t>(bytes));
    }
  }
  Lanes read(std::uint32_t offset, int bytes) const {
    Lanes values{};
    if (bytes == kPredicateWidth) {
      std::memcpy(&values[0], frame_.bytes + offset, 4);
      return values;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&values[i], frame_.bytes + offset + i * static_cast<std::size_t>(bytes),
                  static_cast<std::size_t>(bytes));
    }
    return values;
  }

  std::unique_ptr<ptx::Module> module_;
  const ptx::Instruction* instruction_ = nullptr;
  OperandWidths widths_;
  OpPair pair_;
  Frame frame_{};
};

}  // namespace kernwright::sim::testing
