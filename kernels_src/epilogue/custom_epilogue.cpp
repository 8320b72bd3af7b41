// Texts of kernels with an expression behind them.
#include "kernels_src/epilogue/custom_epilogue.h"

#include "base/errors.h"
#include "base/format.h"

namespace kernwright::kernels {
namespace {

/// The text of the epilogue's type. An operand that is not given has no name in the text.
std::string custom_epilogue_text(const ProductEpilogue& epilogue) {
  return format(R"(
#include <kernwright/custom_epilogue.cuh>
namespace kernwright {{ namespace custom {{
template <typename Bias, bool kAdds>
struct CustomEpilogue : Epilogue<Same, Bias, kAdds> {{
  __device__ static float finish([[maybe_unused]] const TileEpilogueValues& epilogue, float x,
                                 float, const Biases& {}, int k, float {}) {{
    [[maybe_unused]] const float alpha = epilogue.alpha, beta = epilogue.beta;
    {}
    return (
#line 1 "epilogue"
{}
    );
  }}
}};
}} }}
)",
                epilogue.bias ? "biases" : "", epilogue.c ? "c" : "",
                epilogue.bias ? "const float bias = biases.direct[k];" : "(void)k;",
                epilogue.expression);
}

}  // namespace

const Family& EpilogueFamilies::family(const ProductEpilogue& epilogue) const {
  if (epilogue.expression.empty()) return plain_;
  const std::lock_guard held(mutex_);
  auto& made = custom_[{epilogue.expression, epilogue.bias.has_value(), epilogue.c.has_value()}];
  if (made == nullptr) {
    const std::string text = std::string(text_) + custom_epilogue_text(epilogue);
    made = std::make_unique<Family>(name_, text, ProgramScope::named);
  }
  return *made;
}

std::string custom_epilogue_type(const ProductEpilogue& epilogue, const char* bias) {
  return format("custom::CustomEpilogue<{}, {}>", bias, epilogue.c ? "true" : "false");
}

void require_custom_epilogue(const ProductEpilogue& epilogue) {
  if (epilogue.expression.empty() || (!epilogue.activation && !epilogue.gate)) return;
  throw ArgumentError("a product that ends in an expression has no activation and no gate besides");
}

}  // namespace kernwright::kernels
