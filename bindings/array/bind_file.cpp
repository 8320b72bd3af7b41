// Arrays from parts of an open file, and into one.
#include "array/array.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/support/python_support.h"
#include "core/device.h"
#include "memory/allocation_site.h"
#include "memory/file_reader.h"
#include "memory/file_writer.h"

#include <pybind11/stl.h>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace kernwright::python {
namespace {

/// The descriptor of an open file, its name, and where an array begins in it.
using FilePlace = std::tuple<int, std::string, std::uint64_t>;

/// Fills arrays without gaps with the bytes at their places.
void read_arrays(const std::vector<Array>& arrays, const std::vector<FilePlace>& places) {
  if (arrays.size() != places.size())
    throw ArgumentError("pass one place in the files for each array");
  if (arrays.empty()) return;
  Device& device = arrays.front().device();
  const Stream stream = current_stream(device);
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  std::vector<FilePart> parts;
  parts.reserve(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto& [file, name, offset] = places[i];
    parts.push_back({file, name, offset, arrays[i].address(), arrays[i].nbytes()});
  }
  try {
    read_files(device, parts, stream);
  } catch (...) {
    for (const Array& array : arrays) array.use_on(stream);
    throw;
  }
  for (const Array& array : arrays) array.use_on(stream);
}

void write_array(int file, const std::string& name, const Array& array) {
  if (!array.is_contiguous())
    throw InvalidArgument(
        format("{} has gaps in memory: write a copy, x.copy()", array.identify()));
  const Stream stream = current_stream(array.device());
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  write_file(array.device(), file, name, array.address(), array.nbytes(), stream);
}

}  // namespace

void bind_file(py::module_& m) {
  m.def("_read_files", &read_arrays);
  m.def("_write_file", &write_array);
}

}  // namespace kernwright::python
