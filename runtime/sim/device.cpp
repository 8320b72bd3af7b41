// The table of the simulated driver.
#include "sim/device.h"

#include "sim/device/sim_driver.h"

#include <initializer_list>

namespace kernwright::sim {
namespace {

DriverApi make_table() {
  DriverApi api = unsupported_driver_api();
  for (Install* const install :
       {install_init,        install_device_queries, install_context,    install_module,
        install_function,    install_launch,         install_occupancy,  install_memory,
        install_host_memory, install_pool,           install_pointer,    install_copy,
        install_fill,        install_stream,         install_event,      install_capture,
        install_graph,       install_graph_exec,     install_tensor_map, install_cuda_array,
        install_texture})
    install(api);
  return api;
}

}  // namespace

const DriverApi& driver_api() {
  static const DriverApi table = make_table();
  return table;
}

}  // namespace kernwright::sim
