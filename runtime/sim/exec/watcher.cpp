// Where the tables of the interface's functions lie.
#include "sim/exec/watcher.h"

namespace kernwright::sim {

Watcher::~Watcher() = default;
LaunchWatcher::~LaunchWatcher() = default;

}  // namespace kernwright::sim
