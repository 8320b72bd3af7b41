// What hooks do with graphs when they have no word about them.
#include "core/launch/launch_hook.h"

#include "core/graph/graph.h"

namespace kernwright {

void LaunchHook::launch_graph(Graph& graph, const Stream& stream, const LaunchSite& site) {
  graph.launch(stream, site);
}

}  // namespace kernwright
