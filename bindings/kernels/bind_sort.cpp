// Sorting, selection, compaction, search and histograms; kernwright._array.sorting names them.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/array_support.h"
#include "kernels_src/index/unique.h"
#include "kernels_src/sort/compaction.h"
#include "kernels_src/sort/histogram.h"
#include "kernels_src/sort/search.h"
#include "kernels_src/sort/sort.h"
#include "kernels_src/sort/topk.h"

namespace kernwright::python {
namespace {

using kernels::Bins;
using kernels::Ordered;

py::object sorted_values(const py::object& x, int axis, bool descending) {
  const Array array = array_operand(x, "x");
  return py::cast(on_current_stream(
      array, [&](const Stream& stream) { return kernels::sort(array, axis, descending, stream); }));
}

py::object sorted_places(const py::object& x, int axis, bool descending) {
  const Array array = array_operand(x, "x");
  return py::cast(on_current_stream(array, [&](const Stream& stream) {
    return kernels::argsort(array, axis, descending, stream);
  }));
}

py::tuple first_elements(const py::object& x, std::int64_t k, int axis, bool largest) {
  const Array array = array_operand(x, "x");
  Ordered made = on_current_stream(
      array, [&](const Stream& stream) { return kernels::topk(array, k, axis, largest, stream); });
  return py::make_tuple(std::move(made.values), std::move(made.indices));
}

py::object nonzero_places(const py::object& x) {
  const Array array = array_operand(x, "x");
  return py::cast(on_current_stream(
      array, [&](const Stream& stream) { return kernels::flatnonzero(array, stream); }));
}

py::object nonzero_coordinates(const py::object& x, bool by_element) {
  const Array array = array_operand(x, "x");
  return py::cast(on_current_stream(
      array, [&](const Stream& stream) { return kernels::nonzero(array, by_element, stream); }));
}

py::object compressed(const py::object& x, const py::object& mask) {
  const Array array = array_operand(x, "x");
  const Array chosen = array_operand(mask, "mask");
  return py::cast(on_current_stream(
      array, [&](const Stream& stream) { return kernels::compress(array, chosen, stream); }));
}

/// Values, indices, inverse, counts: None where it was not asked for.
py::tuple unique_parts(const py::object& x, bool indices, bool inverse, bool counts) {
  const Array array = array_operand(x, "x");
  kernels::Unique made = on_current_stream(array, [&](const Stream& stream) {
    return kernels::unique(array, {.indices = indices, .inverse = inverse, .counts = counts},
                           stream);
  });
  const auto part = [](bool there, Array& value) {
    return there ? py::cast(std::move(value)) : py::object(py::none());
  };
  return py::make_tuple(std::move(made.values), part(indices, made.indices),
                        part(inverse, made.inverse), part(counts, made.counts));
}

py::object found_places(const py::object& x1, const py::object& x2, bool right,
                        const py::object& sorter) {
  const Array sorted = array_operand(x1, "x1");
  const Array wanted = array_operand(x2, "x2");
  const std::optional<Array> places = optional_operand(sorter, "sorter");
  return py::cast(on_current_stream(sorted, [&](const Stream& stream) {
    return kernels::search_sorted(sorted, wanted, right, places, stream);
  }));
}

py::object members(const py::object& x1, const py::object& x2, bool invert) {
  const Array array = array_operand(x1, "x1");
  const Array among = array_operand(x2, "x2");
  return py::cast(on_current_stream(
      array, [&](const Stream& stream) { return kernels::is_in(array, among, invert, stream); }));
}

/// The lowest and the highest element, on the host.
py::array extremes(const py::object& x) {
  const Array array = array_operand(x, "x");
  return to_numpy(on_current_stream(
      array, [&](const Stream& stream) { return kernels::extremes(array, stream); }));
}

py::object value_counts(const py::object& x, std::int64_t bins, const py::object& weights) {
  const Array array = array_operand(x, "x");
  const std::optional<Array> summed = optional_operand(weights, "weights");
  return py::cast(on_current_stream(array, [&](const Stream& stream) {
    return summed ? kernels::sum_by_value(array, *summed, bins, stream)
                  : kernels::count_values(array, bins, stream);
  }));
}

py::object bin_counts(const py::object& x, const py::object& edges, double scale,
                      const py::object& weights, bool density) {
  const Array array = array_operand(x, "x");
  const Bins bins{.edges = array_operand(edges, "bins"), .scale = scale};
  const std::optional<Array> summed = optional_operand(weights, "weights");
  return py::cast(on_current_stream(array, [&](const Stream& stream) {
    const Array counts = summed ? kernels::weighted_histogram(array, *summed, bins, stream)
                                : kernels::histogram(array, bins, stream);
    return density ? kernels::density(counts, bins, stream) : counts;
  }));
}

}  // namespace

void bind_sort(py::module_& m) {
  m.def("_sort", &sorted_values);
  m.def("_argsort", &sorted_places);
  m.def("_topk", &first_elements);
  m.def("_flatnonzero", &nonzero_places);
  m.def("_nonzero", &nonzero_coordinates);
  m.def("_compress", &compressed);
  m.def("_unique", &unique_parts);
  m.def("_searchsorted", &found_places);
  m.def("_isin", &members);
  m.def("_extremes", &extremes);
  m.def("_bincount", &value_counts);
  m.def("_histogram", &bin_counts);
}

}  // namespace kernwright::python
