// Named places at which a test may stop the process or be called; nothing in a build without tests.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// Exit status of a process that KERNWRIGHT_FAULT_KILL=<name> ended.
inline constexpr int kFaultKillStatus = 42;

/// The action of KW_FAULT_POINT in a build with tests: ends the process without cleaning up when
/// KERNWRIGHT_FAULT_KILL names the place, else calls the function set by a test. Thread-safe.
void reach_fault_point(const char* name);

/// Called with the name of each fault point reached, on the thread that reaches it; an empty
/// function ends this. For tests.
void set_fault_callback(std::function<void(std::string_view)> callback);

}  // namespace kernwright

#ifdef KERNWRIGHT_FAULT_POINTS
#define KW_FAULT_POINT(name) ::kernwright::reach_fault_point(name)
#else
#define KW_FAULT_POINT(name) static_cast<void>(0)
#endif
