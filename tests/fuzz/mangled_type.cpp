// Mangled names, and the probes' answers that are written in them.
#include "jit/signature/mangled_type.h"
#include "base/errors.h"
#include "fuzz/targets.h"
#include "jit/signature/probe.h"

namespace kernwright::fuzz {
namespace {

template <typename Call>
void allow_refusal(Call&& call) {
  try {
    call();
  } catch (const InvalidArgument&) {}
}

}  // namespace

void mangled_type(std::string_view bytes) {
  allow_refusal([&] { spell(*demangle_name(bytes)); });
  allow_refusal([&] { read_kernel_probe(bytes); });
  allow_refusal([&] { read_symbol_probe(bytes); });
}

}  // namespace kernwright::fuzz
