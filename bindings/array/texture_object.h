// Python's CudaArray, Texture and Surface.
#pragma once

#include "array/array.h"
#include "core/image/texture.h"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>

namespace kernwright::python {

namespace py = pybind11;

struct CudaArrayHolder {
  CudaArray array;
};

struct TextureHolder {
  TextureObject texture;
  std::optional<CudaArray> array;  ///< the memory under it: this, or
  Array memory;                    ///< this
};

struct SurfaceHolder {
  SurfaceObject surface;
  CudaArray array;
};

/// Channels of an element. Throws InvalidArgument unless they are 1, 2 or 4.
unsigned channels_argument(std::int64_t channels);

/// The tracked object of a kw.Texture or kw.Surface, or null when `object` is neither.
const std::shared_ptr<TrackedObject>* texture_or_surface(PyObject* object) noexcept;

}  // namespace kernwright::python
