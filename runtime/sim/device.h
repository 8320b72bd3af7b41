// The simulated device as a driver: a DriverApi table whose functions run on the CPU.
#pragma once

#include "driver/driver_api.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace kernwright::sim {

/// The table; the same one at each call. Devices, contexts and memory behind it are process-wide.
/// KERNWRIGHT_SIM_DEVICES sets the number of devices, KERNWRIGHT_SIM_MEMORY the bytes of each,
/// KERNWRIGHT_SIM_THREADS the host threads of a launch, KERNWRIGHT_SIM_BUDGET the instructions that
/// one warp may execute, KERNWRIGHT_SIM_TIMEOUT the seconds that a launch may take. All functions
/// are thread-safe.
///
/// Memory takes sixteen times its size of address space. Where that is above half of what the
/// process can have (ulimit -v, sanitizers), devices whose size the environment does not say have
/// half, a quarter, ... of it, and a warning says so; page-locked memory, else limited by that of
/// the machine, is cut down in the same way. At least 64 MiB remain, or cuInit fails.
///
/// Work runs when it is issued, in issue order, which is a legal order of all streams, and a call
/// that runs a kernel returns the kernel's own error. With a seed (KERNWRIGHT_SIM_SEED or
/// set_schedule_seed()) streams really run apart: work waits in its stream until a call waits for
/// it or asks whether it is done, errors show up there, and the seed chooses among all legal
/// orders. Unlike on a GPU the context stays usable after an error, unless set_sticky_errors() says
/// so.
const DriverApi& driver_api();

/// Takes what device code prints, whole launches at a time and in block order; an empty function
/// restores the default, stdout. Called on the thread that launches, with no lock held, before the
/// launch returns.
using PrintSink = std::function<void(std::string_view text)>;
void set_print_sink(PrintSink sink);

/// Finishes all work, then lets work wait from now on and starts the seed's choices anew; nothing
/// means that work runs when it is issued. The same calls on one thread after the same seed run in
/// the same order. Makes the devices like cuInit; throws InvalidArgument for a wrong environment.
void set_schedule_seed(std::optional<std::uint64_t> seed);

/// Whether accesses to the same bytes by work that nothing orders are found (a FaultReport of kind
/// race, at the call that runs the later one). KERNWRIGHT_CHECKS with `streams` does the same.
/// Costs a bitmap of the bytes that each kernel touches. Turning it forgets what is known.
void set_stream_checks(bool on);

/// Whether the errors that make a context useless on a GPU (illegal address, assert, trap, ...)
/// make it useless here: every later call returns the code, until cuDevicePrimaryCtxReset.
void set_sticky_errors(bool on);

/// Whether every FaultReport that a call leaves for kwTakeReport is written to the log too, as an
/// error: for programs that know nothing of reports.
void set_report_log(bool on) noexcept;

/// `is_interrupted` says whether a signal was received that shall end a launch: the thread that
/// launches asks some 20 times a second, with locks held, so that it must not call this library.
/// The launch ends with a FaultReport of kind interrupted, wherever it is, and the context stays
/// usable. Null: none.
void set_interrupt_check(bool (*is_interrupted)()) noexcept;

/// Findings that are logged name lines of files: `first_line_of` says on which line of `file` the
/// text of `kernel` (lowered name) begins, which is 1 for a file of its own. Null: all are. Called
/// on the thread that launches.
void set_text_places(int (*first_line_of)(std::string_view kernel, std::string_view file)) noexcept;

}  // namespace kernwright::sim
