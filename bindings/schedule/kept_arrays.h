// Arrays of Python that a scheduler brings to the device for tasks of a model.
#pragma once

#include "array/shape.h"
#include "base/scalar_type.h"
#include "bindings/support/python_support.h"
#include "memory/evictable_buffer.h"
#include "schedule/model_content.h"

#include <pybind11/pybind11.h>
#include <memory>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

/// Evictable content of array objects: while it is in use the same objects have it, else they have
/// no memory. Ends by giving the content back.
class KeptArrays final : public schedule::ModelContent {
 public:
  /// Moves the content of `arrays`, distinct objects. With the GIL held. Throws InvalidArgument for
  /// an array whose memory another object has, too; all arrays are then as before.
  KeptArrays(const py::list& arrays, std::shared_ptr<EvictionGroup> group);
  ~KeptArrays() override;

  const std::shared_ptr<EvictionGroup>& group() const noexcept { return group_; }
  std::size_t bytes() const noexcept;
  /// Moves what nobody uses to the host. Returns its bytes. With the GIL given up.
  std::size_t evict();

 protected:
  void bring() override;
  void let_go() noexcept override;

 private:
  struct Entry {
    PyObject* object;  ///< a reference of its own
    Shape shape;
    ScalarType type;
    std::unique_ptr<EvictableBuffer> buffer;
  };
  void add(py::handle array);
  void give_back() noexcept;

  const std::shared_ptr<EvictionGroup> group_;
  std::vector<Entry> entries_;
};

void bind_kept_arrays(py::module_& m);

}  // namespace kernwright::python
