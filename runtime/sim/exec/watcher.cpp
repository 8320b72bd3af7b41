// The virtual tables of the interface are in this file.
#include "sim/exec/watcher.h"

namespace kernwright::sim {

Watcher::~Watcher() = default;
LaunchWatcher::~LaunchWatcher() = default;

}  // namespace kernwright::sim
