// The Python line that a launch was asked for, kept as two words.
#pragma once

#include "core/launch/launch_site.h"

namespace kernwright::python {

/// The innermost Python frame: its code object (held for good) and its position. Needs the GIL.
LaunchSite caller_site() noexcept;

/// The same of the innermost frame that is not this package's own Python.
LaunchSite user_site() noexcept;

}  // namespace kernwright::python
