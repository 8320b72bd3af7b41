// The table of the simulated driver.
#include "sim/device.h"

#include "sim/device/sim_driver.h"

namespace kernwright::sim {
namespace {

DriverApi make_table() {
  DriverApi api = unsupported_driver_api();
  install_init(api);
  install_device_queries(api);
  install_context(api);
  install_module(api);
  install_function(api);
  install_launch(api);
  install_occupancy(api);
  install_memory(api);
  install_host_memory(api);
  install_pool(api);
  install_pointer(api);
  install_copy(api);
  install_fill(api);
  install_stream(api);
  install_event(api);
  install_capture(api);
  install_graph(api);
  install_graph_exec(api);
  install_tensor_map(api);
  install_cuda_array(api);
  install_texture(api);
  return api;
}

}  // namespace

const DriverApi& driver_api() {
  static const DriverApi table = make_table();
  return table;
}

}  // namespace kernwright::sim
