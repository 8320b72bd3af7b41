// Pages behind fresh host memory.
#pragma once

#include <cstddef>

namespace kernwright {

/// Lets the system put pages behind fresh memory of the host, by several threads when it pays: a
/// copy into it need not stop at each page. A hint: it changes no byte. Where the system cannot do
/// it (Linux before 5.14), and for less than 16 MB, nothing happens. Thread-safe.
void populate_pages(void* memory, std::size_t bytes) noexcept;

}  // namespace kernwright
