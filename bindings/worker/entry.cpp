// A worker's whole life, behind a function without C++ types.
#include "bindings/worker/entry.h"

#include <exception>

#include "base/log.h"
#include "bindings/worker/all_tasks.h"
#include "core/runtime.h"
#include "sim/device.h"
#include "worker/child_process.h"
#include "worker/serve.h"

int kernwright_worker_main(int, char**) {
  using namespace kernwright;
  Runtime::register_sim(&sim::driver_api);
  try {
    serve_worker(ChildProcess::kChannel, all_worker_tasks());
  } catch (const std::exception& error) {
    log(LogLevel::error, "kernwright-worker, which kernwright starts by itself, cannot begin: {}",
        error.what());
    return 1;
  }
}
