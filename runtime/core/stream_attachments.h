// What belongs to streams of our own beside their work.
#pragma once

#include "core/stream.h"

#include <functional>
#include <memory>

namespace kernwright {

/// The object that belongs to `key` for `stream`, which create() made: such as memory that its
/// launches share. `make` makes it when there is none yet, and runs without a lock: of two that
/// were made at once one is dropped. The object is dropped with the stream, just before its handle
/// is destroyed: its destructor must not throw nor take memory of the device, and may still record
/// an event there, by Stream::borrow() with a `keep_alive` of its own. Thread-safe. Throws
/// InvalidArgument for a stream that nobody here owns, and what `make` throws.
std::shared_ptr<void> stream_attachment(const Stream& stream, const void* key,
                                        const std::function<std::shared_ptr<void>()>& make);

}  // namespace kernwright
