// Checks of arrays that callers give for results.
#include "kernels_src/result_target.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/axes.h"
#include "kernels_src/copy/copy.h"

namespace kernwright::kernels {
namespace {

constexpr std::uint64_t kResultAlignment = 16;  ///< bytes of the widest store

[[noreturn]] void refuse_target(const Array& out, const ResultForm& form, const char* reason) {
  throw InvalidArgument(
      format("{} cannot write to {}, a {}: {}", form.function, form.name, out.identify(), reason));
}

/// Whether both have equal elements at equal addresses.
bool is_same_view(const Array& a, const Array& b) {
  if (a.address() != b.address() || a.type() != b.type() || a.shape() != b.shape()) return false;
  return a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous());
}

void require_no_overlap(const Array& out, const ResultForm& form, const OtherArray& other,
                        bool in_place) {
  if (other.array == nullptr || !may_overlap(out, *other.array)) return;
  if (in_place && is_same_view(out, *other.array)) return;
  const std::string remedy = in_place ? format("it may be {} itself, or lie apart", other.name)
                                      : std::string("give an array that lies apart");
  refuse_target(out, form, format("it shares memory with {}; {}", other.name, remedy).c_str());
}

}  // namespace

const Array* pointer_or_null(const std::optional<Array>& array) noexcept {
  return array ? &*array : nullptr;
}

Array result_array(const std::optional<Array>& out, const ResultForm& form, const Stream& stream) {
  if (!out) return Array::empty(form.device, form.shape, form.type, stream);
  if (out->shape() != form.shape || out->type() != form.type) {
    refuse_target(
        *out, form,
        format("the result is {} of shape {}", scalar_name(form.type), shape_to_string(form.shape))
            .c_str());
  }
  if (&out->device() != &form.device) {
    refuse_target(*out, form, "it must be on the same device as the arguments");
  }
  if (out->read_only()) refuse_target(*out, form, "it is read-only");
  if (repeats_elements(*out)) refuse_target(*out, form, "several of its elements are one");
  return *out;
}

Array contiguous_result(const std::optional<Array>& out, const ResultForm& form,
                        const Stream& stream) {
  Array result = result_array(out, form, stream);
  if (out && !out->is_contiguous()) {
    refuse_target(*out, form, "its strides have gaps or another order, and must be contiguous");
  }
  if (out && out->address() % kResultAlignment != 0) {
    refuse_target(*out, form, "it must begin at a multiple of 16 bytes");
  }
  return result;
}

std::optional<Array> direct_target(const std::optional<Array>& out, const ResultForm& form,
                                   const Stream& stream) {
  if (!out) return std::nullopt;
  Array target = result_array(out, form, stream);
  if (!target.is_contiguous() || target.address() % kResultAlignment != 0) return std::nullopt;
  return target;
}

Array deliver(const std::optional<Array>& out, const Array& result, const Stream& stream) {
  if (!out) return result;
  if (result.size() > 0 && result.address() != out->address()) {
    copy_elements(*out, result.reshape(out->shape()), stream);
  }
  return *out;
}

void require_apart(const std::optional<Array>& out, const ResultForm& form,
                   std::initializer_list<OtherArray> others) {
  if (!out) return;
  for (const OtherArray& each : others) require_no_overlap(*out, form, each, false);
}

void require_apart_or_same(const std::optional<Array>& out, const ResultForm& form,
                           std::initializer_list<OtherArray> others) {
  if (!out) return;
  for (const OtherArray& each : others) require_no_overlap(*out, form, each, true);
}

}  // namespace kernwright::kernels
