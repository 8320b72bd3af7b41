// The table of the simulated driver.
#include "sim/device.h"

#include "sim/device/sim_driver.h"

namespace kernwright::sim {

const DriverApi& driver_api() {
  static const DriverApi table{
#define KW_DRIVER(name, symbol, since, need, parameters) guarded<calls::name>,
#define KW_DRIVER_EXTENSION(name, parameters) guarded<calls::name>,
#include "driver/driver_api.def"
  };
  return table;
}

}  // namespace kernwright::sim
