// A module after decoding: two code arrays with the same indices, and the tables they refer to.
#pragma once

#include "base/fault.h"
#include "sim/code/op.h"
#include "sim/ptx/ast.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace kernwright::sim {

/// The origin of an op, for messages. Parallel to Program::full.
struct Place {
  std::int32_t ptx_line = 0;
  ptx::SourceLine source;
  std::string_view opcode;
};

/// An immediate for a new frame: `bits` replicated over 32 lanes of `bytes` each.
struct FrameConstant {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 4;
  std::uint64_t bits = 0;
  bool in_shared = false;  ///< an address in shared memory: of the block's own rank
};

struct ParameterSlot {
  std::string name;
  std::uint32_t offset = 0, bytes = 0, alignment = 1;
};

struct FunctionInfo {
  std::string name;
  bool is_entry = false;
  std::uint32_t first_op = 0;
  std::uint32_t block_op = 0;  ///< where the second and later blocks in a frame begin; see passes.h
  std::uint32_t frame_bytes = 0;  ///< whole cache lines: registers, constants, areas
  std::uint32_t areas_begin = 0;  ///< in the frame: those of calls and of address plans, to the end
  std::vector<FrameConstant> constants;
  std::vector<FrameConstant> zeroed;  ///< registers that may be read before they are written
  std::vector<ParameterSlot> parameters;
  std::uint32_t parameter_bytes = 0;
  std::uint32_t return_bytes = 0;
  std::uint32_t parameter_base = 0;  ///< device functions: frame offset of lane 0's parameter block
  std::uint32_t parameter_stride = 0;  ///< bytes from one lane's block to the next
  std::uint32_t return_base = 0;       ///< frame offset of lane 0's return block
  std::uint32_t return_stride = 0;
  std::uint32_t local_bytes = 0;   ///< .local variables of one thread, this function alone
  std::uint32_t local_end = 0;     ///< the same without what aligns the next function's variables
  std::uint32_t stack_bytes = 0;   ///< entries: local memory of one thread with everything called
  std::uint32_t shared_bytes = 0;  ///< static shared memory reachable from an entry
  std::uint32_t dynamic_shared_offset = 0;  ///< entries: where dynamic shared memory begins
  bool uses_reserved_shared = false;        ///< entries: %reserved_smem_offset_*
  std::array<std::uint32_t, 3> required_threads{};
  std::array<std::uint32_t, 3> required_cluster{};  ///< blocks; zeros: none asked for
  bool explicit_cluster = false;                    ///< only launched with a cluster size
  std::uint32_t max_threads = 0;                    ///< from .maxntid / .reqntid; 0 = none
};

/// Free of host pointers into a device, except the addresses of module variables from the loader.
/// Immutable after decode(); shared by all workers.
struct Program {
  std::vector<Op> full, masked;
  std::vector<Place> places;
  std::vector<FunctionInfo> functions;
  std::vector<std::uint32_t> lists;  ///< elements of vector operands (code/op.h)
  std::uint32_t site_count = 0;
  std::shared_ptr<ptx::Module> module;
  struct Tables;  ///< call sites, operand lists: code/tables.h
  std::shared_ptr<Tables> tables;

  const FunctionInfo* find(std::string_view name) const noexcept;
  /// The place of the op, for a report.
  FaultPlace get_place(std::uint32_t op) const;
};

/// Addresses of the module's .global and .const variables (tagged) by name, chosen by the loader.
using SymbolAddresses = std::unordered_map<std::string, std::uint64_t>;

enum class CodeForm : std::uint8_t {
  fast,
  /// Each instruction of the text stays an op of its own, in each block of threads, and
  /// Tables::origins and register_offsets are filled: for observation of running code.
  as_written,
};

/// Decodes every function with a body. Throws ptx::PtxError for unsupported code.
std::unique_ptr<Program> decode(std::shared_ptr<ptx::Module> module, const SymbolAddresses& symbols,
                                CodeForm form = CodeForm::fast);

}  // namespace kernwright::sim
