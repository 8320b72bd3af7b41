// The random engines of tests, optimised.
#include "unit/random_engines.h"

template std::mt19937::result_type std::mt19937::operator()();
template std::mt19937_64::result_type std::mt19937_64::operator()();
