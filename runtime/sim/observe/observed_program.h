// A program with an observer in front of its ops.
#pragma once

#include "sim/check/checked_program.h"
#include "sim/code/program.h"
#include "sim/code/tables.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kernwright::sim {

/// The registers of one of an op's addresses: Op::a with Op::imm, or Op::b with Op::imm2.
struct AddressPlace {
  ptx::Space space = ptx::Space::generic;
  bool narrow = false;  ///< the register holds 32 bits
};

/// An op of an observed program. Parallel to Program::full.
struct ObservedOp {
  OpFn full = nullptr, masked = nullptr;  ///< what the op really does
  OpOrigin origin;
  std::uint32_t function = 0;  ///< index into Program::functions
  CheckKind kind = CheckKind::none;
  std::uint8_t bytes = 0;  ///< per lane; of a tile: a row
  std::uint8_t tiles = 0;
  bool uncounted = false;      ///< moves data in a way that is no warp's request
  bool meets = false;          ///< bar.warp.sync, which goes on where it waits and is not run again
  AddressPlace address, from;  ///< `from`: source of a copy
};

/// Immutable; shared by all launches of the module.
struct ObservedProgram {
  Program program;
  std::vector<ObservedOp> ops;
};

/// `written` is code as written (CodeForm), or the checked form of such code. It outlives the
/// result.
std::unique_ptr<ObservedProgram> make_observed(const Program& written);

/// The instruction as its author wrote it, with its guard: "@%p1 bra $L__BB0_2".
std::string instruction_text(const ptx::Module& module, const ptx::Function& function,
                             const ptx::Instruction& instruction);

}  // namespace kernwright::sim
