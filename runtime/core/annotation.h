// A name for a thread's work meanwhile, in profiles and in the tools that listen to NVTX.
#pragma once

#include "driver/nvtx.h"

#include <memory>
#include <string>

namespace kernwright {

/// Names the time from its construction to its end: a range of NVTX's domain "Kernwright" when a
/// tool listens, and an activity of kind `annotation` in a recording in progress at both moments.
/// Ends on the thread that began it, inside out. Costs two loads without a listening tool.
class Annotation {
 public:
  explicit Annotation(const std::string& name);
  ~Annotation();
  Annotation(const Annotation&) = delete;
  Annotation& operator=(const Annotation&) = delete;

 private:
  struct Recorded;
  NvtxRange range_;
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace kernwright
