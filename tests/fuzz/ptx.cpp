// PTX text: what is refused must be refused with PtxError.
#include "fuzz/targets.h"
#include "sim/ptx/parse/parser.h"

#include <string>

namespace kernwright::fuzz {

void ptx(std::string_view bytes) {
  try {
    sim::ptx::parse(std::string(bytes));
  } catch (const sim::ptx::PtxError&) {}
}

}  // namespace kernwright::fuzz
