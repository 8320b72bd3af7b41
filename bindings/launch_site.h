// The Python line that a launch was asked for, kept as two words.
#pragma once

#include "core/launch_site.h"

namespace kernwright::python {

/// The innermost Python frame: its code object (held for good) and its position. Needs the GIL.
LaunchSite caller_site() noexcept;

}  // namespace kernwright::python
