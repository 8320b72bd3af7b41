// Turns one parsed function into blocks of ops over virtual registers.
#pragma once

#include "sim/code/lower/lane_areas.h"
#include "sim/code/lower/lowered.h"
#include "sim/code/lower/lowering_context.h"
#include "sim/code/lower/named_spaces.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::sim {

/// Call sites hold area numbers in their offset fields until the frame is laid out.
class FunctionLowering {
 public:
  FunctionLowering(LoweringContext& context, std::uint32_t index);
  /// Throws ptx::PtxError for unsupported code. Used once.
  Lowered run();
  /// Indices into Tables::call_sites of this function.
  const std::vector<std::uint32_t>& call_sites() const { return call_sites_; }

 private:
  using Inst = ptx::Instruction;

  // lower.cpp: blocks and control flow
  void split_at_labels();
  void start_block(std::uint32_t block);
  std::uint32_t new_block();
  LoweredBlock& current() { return lowered_.blocks[current_]; }
  void lower(const Inst& inst);
  void lower_unguarded(const Inst& inst);
  void lower_branch(const Inst& inst);
  void lower_table(const Inst& inst);
  void lower_leave(Internal which, const Inst* inst);
  void lower_generic(const Inst& inst);
  bool lower_move(const Inst& inst);
  std::uint32_t label_block(std::uint32_t label) const;
  /// Appends an op under the instruction's guard.
  void emit(LoweredOp op);
  /// Appends an op for preparing operands: no guard.
  void emit_plain(LoweredOp op);
  LoweredOp internal(Internal which, const Inst* inst) const;
  [[noreturn]] void fail(const Inst& inst, const std::string& what) const;

  // lower_parameters.cpp
  bool has_parameter_copy() const;
  void copy_parameters();
  bool lower_parameter_access(const Inst& inst);

  // lower_operands.cpp: operands to Refs
  std::uint8_t operand_width(const ptx::Operand& operand) const;
  std::uint8_t register_width(std::uint32_t reg) const { return lowered_.register_bytes[reg]; }
  Ref source(const Inst& inst, const ptx::Operand& operand);
  Ref destination(const ptx::Operand& operand) const;
  Ref vector(const Inst& inst, const ptx::Operand& operand, bool is_destination);
  Ref address(const Inst& inst, const ptx::Operand& operand, std::int64_t& displacement);
  Ref symbol(const Inst& inst, const ptx::Operand& operand, std::uint8_t bytes,
             std::int64_t offset);
  Ref variable_address(const Inst& inst, const ptx::Variable& variable, std::uint32_t place,
                       std::uint8_t bytes, std::int64_t offset);
  Ref local_address(const Inst& inst, std::uint64_t offset, std::uint8_t bytes);
  Ref frame_address(const Inst& inst, Internal which, std::uint64_t offset, std::uint8_t bytes);
  Ref special(const Inst& inst, ptx::SpecialRegister which, std::uint8_t bytes,
              std::optional<Ref> target = {});
  Ref constant(std::uint8_t bytes, std::uint64_t bits, bool in_shared = false);
  Ref constant(const ptx::Operand& operand);
  Ref predicate(const Inst& inst, std::uint32_t reg, bool negated);
  void bind_operands(const Inst& inst, LoweredOp& op);

  // lower_wide.cpp: instructions with more operands than an op has fields
  bool bind_wide_operands(const Inst& inst, LoweredOp& op);
  void bind_product(const Inst& inst, LoweredOp& op);
  bool bind_texture_operands(const Inst& inst, LoweredOp& op);

  // lower_calls.cpp
  struct Signature {
    std::uint32_t function = kIndirect;
    const std::vector<ptx::Variable>* params = nullptr;
    const std::vector<ptx::Variable>* returns = nullptr;
    const Builtin* builtin = nullptr;
  };
  Signature call_signature(const Inst& inst) const;
  void lower_call(const Inst& inst);
  std::vector<CallValue> call_values(const Inst& inst, const ptx::Operand& list,
                                     const std::vector<ptx::Variable>& formal,
                                     std::uint32_t& block_bytes);

  LoweringContext& context_;
  std::uint32_t index_;
  const ptx::Function& function_;
  const FunctionInfo& info_;
  Lowered lowered_;
  NamedSpaces spaces_;
  LaneAreas areas_;
  std::uint32_t current_ = 0;
  std::vector<std::uint32_t> block_at_;  ///< per instruction (and one past): block or ~0
  std::vector<std::uint32_t> call_sites_;
  std::optional<Ref> guard_;
  bool guard_negated_ = false;
};

}  // namespace kernwright::sim
