// The part of the fake driver for green contexts.
#pragma once

#include "unit/core/fake_driver.h"

namespace kernwright::testing {

void fill_partitions(DriverApi& api);

}  // namespace kernwright::testing
