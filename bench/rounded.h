// Numbers of results, short enough to read.
#pragma once
#include <cmath>

/// To four decimal places.
inline double rounded(double value) { return std::round(value * 1e4) / 1e4; }
