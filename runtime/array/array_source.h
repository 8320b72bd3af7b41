// The source of a thread's new arrays, in place of their device's resource.
#pragma once

#include "array/array.h"

namespace kernwright {

/// Another library's allocator, for Array::empty().
class ArraySource {
 public:
  virtual ~ArraySource() = default;
  /// Uninitialised row-major memory of `device` for work of `stream`. What it throws,
  /// Array::empty() throws.
  virtual Array make(Device& device, Shape shape, ScalarType type, const Stream& stream) = 0;
};

/// While it lives, Array::empty() of this thread asks `source`, or the devices' resources if that
/// is null. Scopes nest. A source is outside of its own scope while it makes an array.
class ArraySourceScope {
 public:
  explicit ArraySourceScope(ArraySource* source) noexcept;
  ~ArraySourceScope();
  ArraySourceScope(const ArraySourceScope&) = delete;
  ArraySourceScope& operator=(const ArraySourceScope&) = delete;

 private:
  ArraySource* previous_;
};

}  // namespace kernwright
