// The simulated device as a driver: a DriverApi table of functions on the CPU.
#pragma once

#include "driver/driver_api.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kernwright::sim {

/// The table; the same one at each call. Devices, contexts and memory behind it are process-wide.
/// KERNWRIGHT_SIM_DEVICES sets the number of devices, KERNWRIGHT_SIM_MEMORY the bytes of each,
/// KERNWRIGHT_SIM_THREADS the host threads of a launch, KERNWRIGHT_SIM_BUDGET the most instructions
/// of one warp, KERNWRIGHT_SIM_TIMEOUT the most seconds of a launch. All functions are thread-safe.
///
/// Memory takes sixteen times its size of address space. This may be above half of the process's
/// own limit (ulimit -v, sanitizers). Then devices without a size in the environment have half, a
/// quarter, ... of it, and a warning says so. Page-locked memory, else limited by the machine's
/// memory, is cut down in the same way. At least 64 MiB remain, or cuInit fails.
///
/// Work runs when it is issued, in issue order. This is a legal order of all streams, and a call
/// that runs a kernel returns the kernel's own error. With a seed (KERNWRIGHT_SIM_SEED or
/// set_schedule_seed()) streams run independently: work waits in its stream until a call waits for
/// it or queries it, errors appear there, and the seed chooses among all legal orders. Unlike on a
/// GPU the context stays usable after an error, unless set_sticky_errors() is on.
const DriverApi& driver_api();

/// Takes the text printed by device code, whole launches at a time and in block order; an empty
/// function restores the default, stdout. Called on the launching thread, with no lock held, before
/// the launch returns.
using PrintSink = std::function<void(std::string_view text)>;
void set_print_sink(PrintSink sink);

/// Finishes all work, then delays work from now on and starts the seed's choices anew. Without a
/// value, work runs when it is issued. The same calls on one thread after the same seed run in the
/// same order. Makes the devices like cuInit; throws InvalidArgument for a wrong environment.
void set_schedule_seed(std::optional<std::uint64_t> seed);

/// Turns on reports of unordered accesses to the same bytes (a Fault of kind race, at the
/// call that runs the later one). KERNWRIGHT_CHECKS with `streams` does the same. Costs a bitmap of
/// the bytes touched by each kernel. Each call forgets the known accesses.
void set_stream_checks(bool on);

/// Whether errors that make a context useless on a GPU (illegal address, assert, trap, ...) make it
/// useless here: every later call returns the code, until cuDevicePrimaryCtxReset.
void set_sticky_errors(bool on);

/// Whether each Fault left for kwTakeReport is written to the log too, as an error: for
/// programs without knowledge of reports.
void set_report_log(bool on) noexcept;

/// `is_interrupted` tells whether a signal to end a launch was received. The launching thread asks
/// some 20 times a second, with locks held, so it must not call this library. The launch ends with
/// a Fault of kind interrupted, wherever it is, and the context stays usable. Null: none.
void set_interrupt_check(bool (*is_interrupted)()) noexcept;

/// Logged findings name lines of files: `first_line` returns the first line of the text of
/// `kernel` (lowered name) in `file`, 1 for a file of its own. Null: 1 for all. Called on the
/// launching thread.
void set_text_places(int (*first_line)(std::string_view kernel, std::string_view file)) noexcept;

/// Messages of faults and logged findings show the line of the source: `get_line` returns the text
/// of line `line` of `file` in the module with the code `code` (sim::code_id()), empty when it is
/// not known. Null: none is shown. Called on the launching thread, with locks held.
void set_text_lines(std::string (*get_line)(std::uint64_t code, const std::string& file,
                                            int line)) noexcept;

}  // namespace kernwright::sim
