// kernwright-worker: a worker process of the C++ library. Started by Worker, not by hand.
#include "worker/child_process.h"
#include "worker/serve.h"

int main() {
  return kernwright::serve_worker(kernwright::ChildProcess::kChannel, kernwright::worker_tasks());
}
