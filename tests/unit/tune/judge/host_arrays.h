// Arrays of the judge's tests.
#pragma once

#include "tune/judge/host_value.h"

#include <vector>

namespace kernwright::test {

inline HostValue floats(const std::vector<float>& v) {
  return HostValue::from(ScalarType::float32, v);
}
inline HostValue doubles(const std::vector<double>& v) {
  return HostValue::from(ScalarType::float64, v);
}

}  // namespace kernwright::test
