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
#include "memory/file_transfer.h"

#include <pybind11/stl.h>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

/// Fills arrays without gaps with the bytes of a file from the places `offsets` on.
void read_file(int file, const std::string& name, const std::vector<Array>& arrays,
               const std::vector<std::uint64_t>& offsets) {
  if (arrays.size() != offsets.size())
    throw ArgumentError("pass one place in the file for each array");
  if (arrays.empty()) return;
  Device& device = arrays.front().device();
  const Stream stream = current_stream(device);
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  FileTransfer transfer(device, file, name, stream);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    transfer.read(arrays[i].address(), offsets[i], arrays[i].nbytes());
    arrays[i].use_on(stream);
  }
  transfer.wait();
}

void write_file(int file, const std::string& name, const Array& array) {
  if (!array.is_contiguous())
    throw InvalidArgument(
        format("{} has gaps in memory: write a copy, x.copy()", array.identify()));
  const Stream stream = current_stream(array.device());
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  FileTransfer transfer(array.device(), file, name, stream);
  transfer.write(array.address(), array.nbytes());
}

}  // namespace

void bind_file(py::module_& m) {
  m.def("_read_file", &read_file);
  m.def("_write_file", &write_file);
}

}  // namespace kernwright::python
