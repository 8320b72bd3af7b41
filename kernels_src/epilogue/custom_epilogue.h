// Kernels of products that end in an expression of the caller's own.
#pragma once

#include "kernels_src/epilogue/product_epilogue.h"
#include "kernels_src/family.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

namespace kernwright::kernels {

/// The families of one text: of the text alone, and of the text with an expression behind it. Make
/// one for good, as a Family. Thread-safe.
class EpilogueFamilies {
 public:
  /// `name` and `text` as for a Family; the text must stay.
  EpilogueFamilies(const char* name, std::string_view text)
      : name_(name), text_(text), plain_(name, text) {}
  /// The family for an epilogue; made once for each expression.
  const Family& family(const ProductEpilogue& epilogue) const;

 private:
  const char* name_;
  std::string_view text_;
  Family plain_;
  mutable std::mutex mutex_;
  /// By the expression, and whether there are a bias and c.
  mutable std::map<std::tuple<std::string, bool, bool>, std::unique_ptr<Family>> custom_;
};

/// "custom::CustomEpilogue<BFloat16, true>": the type in the text of such a family.
std::string custom_epilogue_type(const ProductEpilogue& epilogue, const char* bias);
/// Throws ArgumentError where more follows the product than the expression.
void require_custom_epilogue(const ProductEpilogue& epilogue);

}  // namespace kernwright::kernels
