// The Python line of a launch, kept as two words.
#pragma once

#include "core/launch/launch_site.h"

namespace kernwright::python {

/// The innermost Python frame: its code object (held for good) and its position. Needs the GIL.
LaunchSite caller_site() noexcept;

/// The same of the innermost frame outside this package's own Python.
LaunchSite user_site() noexcept;

}  // namespace kernwright::python
