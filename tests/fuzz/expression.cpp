// Expressions: parsed, bound, evaluated and bounded; what is in bounds must stay there.
#include "tune/expression.h"

#include "base/errors.h"
#include "fuzz/targets.h"
#include "tune/expression_bounds.h"

#include <stdexcept>
#include <vector>

namespace kernwright::fuzz {
namespace {

void check_bounds(const Expression& expression, std::vector<Bounds> slots,
                  const std::vector<Scalar>& values) {
  const ExpressionTree& tree = expression.tree();
  const Bounds bounds = expression_bounds(tree, tree.root, slots);
  const Evaluation result = expression.try_evaluate(values);
  if (result.failure != nullptr) {
    if (bounds.certain) throw std::logic_error("a certain evaluation fails");
    return;
  }
  const bool truth = is_true(result.value);
  if (bounds.always_true() && !truth) throw std::logic_error("always true is false");
  if (bounds.always_false() && truth) throw std::logic_error("always false is true");
}

}  // namespace

void expression(std::string_view bytes) {
  try {
    const Expression parsed(bytes);
    const std::vector<std::string> names = {"a", "b", "n"};
    const Expression bound = parsed.bind(names, {{"s", std::string("row")}});
    for (const std::int64_t a : {-3, 0, 1, 1024}) {
      const std::vector<Scalar> values = {Scalar::from(a), Scalar::from(0.5),
                                          Scalar::from(a * a + 1)};
      check_bounds(bound, {Bounds::from(-3, 1024), Bounds::from(0.5, 0.5), Bounds::from(1, 2e6)},
                   values);
    }
  } catch (const InvalidArgument&) {
  } catch (const NameNotFound&) {}
}

}  // namespace kernwright::fuzz
