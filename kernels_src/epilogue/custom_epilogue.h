// Kernels of products that end in an expression of the caller's own.
#pragma once

#include "kernels_src/epilogue/product_epilogue.h"
#include "kernels_src/family.h"

#include <string>
#include <string_view>

namespace kernwright::kernels {

/// `plain`, or for an epilogue with an expression the family of `text` (named `name`) with that
/// expression behind it; made once for each, for good. Thread-safe.
const Family& epilogue_family(const Family& plain, const char* name, std::string_view text,
                              const ProductEpilogue& epilogue);
/// "custom::CustomEpilogue<BFloat16, true>": the type in the text of epilogue_family().
std::string custom_epilogue_type(const ProductEpilogue& epilogue, const char* bias);
/// Throws ArgumentError where more follows the product than the expression.
void require_custom_epilogue(const ProductEpilogue& epilogue);

}  // namespace kernwright::kernels
