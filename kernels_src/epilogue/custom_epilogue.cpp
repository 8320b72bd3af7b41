// Texts of kernels with an expression behind them.
#include "kernels_src/epilogue/custom_epilogue.h"

#include "base/errors.h"
#include "base/format.h"

#include <map>
#include <mutex>
#include <tuple>

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

const Family& epilogue_family(const Family& plain, const char* name, std::string_view text,
                              const ProductEpilogue& epilogue) {
  if (epilogue.expression.empty()) return plain;
  static auto& mutex = *new std::mutex;
  static auto& made =
      *new std::map<std::tuple<std::string, std::string, bool, bool>, const Family*>;
  const std::tuple key(std::string(name), epilogue.expression, epilogue.bias.has_value(),
                       epilogue.c.has_value());
  const std::lock_guard held(mutex);
  const Family*& family = made[key];
  if (family == nullptr) {
    family =
        new Family(name, std::string(text) + custom_epilogue_text(epilogue), ProgramScope::named);
  }
  return *family;
}

std::string custom_epilogue_type(const ProductEpilogue& epilogue, const char* bias) {
  return format("custom::CustomEpilogue<{}, {}>", bias, epilogue.c ? "true" : "false");
}

void require_custom_epilogue(const ProductEpilogue& epilogue) {
  if (epilogue.expression.empty() || (!epilogue.activation && !epilogue.gate)) return;
  throw ArgumentError("a product that ends in an expression has no activation and no gate besides");
}

}  // namespace kernwright::kernels
