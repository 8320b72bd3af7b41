// The error for an unsupported instruction, with its places in the PTX and in the source.
#include "sim/code/lower/lowering_context.h"

#include "base/format.h"
#include "sim/ptx/parse/parser.h"

#include <cstddef>

namespace kernwright::sim {

void refuse(const LoweringContext& context, const ptx::Function& function,
            const ptx::Instruction& inst, const std::string& what) {
  const auto file = static_cast<std::size_t>(inst.source.file);
  throw ptx::PtxError(
      format("{}: {} (in {}, PTX line {})", inst.opcode, what, function.name, inst.ptx_line),
      inst.ptx_line, inst.source, std::string(inst.opcode),
      file < context.module.files.size() ? context.module.files[file] : "");
}

}  // namespace kernwright::sim
