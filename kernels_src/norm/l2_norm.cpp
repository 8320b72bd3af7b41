// Brings the axis to the end and back.
#include "kernels_src/norm/l2_norm.h"

#include "array/shape.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/norm/norm.h"
#include "kernels_src/norm/norm_backward.h"
#include "kernels_src/result_target.h"
#include "kernels_src/row_plan.h"

namespace kernwright::kernels {

Array l2_norm(const Array& x, int axis, double eps, const std::optional<Array>& out,
              const Stream& stream) {
  NormOptions options{.kind = NormKind::l2, .eps = eps};
  if (x.ndim() == 0) return norm(x, options, stream).out;  // with the error's message
  axis = normalize_axis(axis, x.ndim());
  if (axis == x.ndim() - 1) {
    options.out = out;
    return norm(x, options, stream).out;
  }
  const ResultForm form{norm_name(NormKind::l2, 0), x.device(), x.shape(), x.type()};
  if (out) contiguous_result(out, form, stream);
  require_apart_or_same(out, form, {{"x", &x}});
  const Array rows = norm(x.transpose(axis_last(x.ndim(), axis)), options, stream).out;
  const Array result = rows.transpose(last_back(x.ndim(), axis));
  if (!out) return copy(result, stream);
  copy_elements(*out, result, stream);
  return *out;
}

Array l2_norm_backward(const Array& dy, const Array& x, int axis, double eps,
                       const Stream& stream) {
  const NormOptions options{.kind = NormKind::l2, .eps = eps};
  if (x.ndim() == 0 || dy.ndim() != x.ndim())
    return norm_backward(dy, x, options, {}, stream).dx;  // with the error's message
  axis = normalize_axis(axis, x.ndim());
  if (axis == x.ndim() - 1) return norm_backward(dy, x, options, {}, stream).dx;
  const std::vector<int> axes = axis_last(x.ndim(), axis);
  const Array dx = norm_backward(dy.transpose(axes), x.transpose(axes), options, {}, stream).dx;
  return copy(dx.transpose(last_back(x.ndim(), axis)), stream);
}

}  // namespace kernwright::kernels
