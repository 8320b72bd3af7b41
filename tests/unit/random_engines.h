// The random engines of tests are compiled once, optimised (random_engines.cpp). Tests are not, and
// some draw millions of numbers.
#pragma once

#include <random>

extern template std::mt19937::result_type std::mt19937::operator()();
extern template std::mt19937_64::result_type std::mt19937_64::operator()();
