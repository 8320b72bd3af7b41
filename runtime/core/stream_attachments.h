// Objects attached to our own streams besides their work.
#pragma once

#include "core/stream.h"

#include <functional>
#include <memory>

namespace kernwright {

/// The object of `key` for `stream`, a stream that create() made: such as memory for its launches.
/// `make` makes it at the first call, and runs without a lock: of two made at once one is dropped.
/// The object is dropped with the stream, just before the handle is destroyed. Its destructor must
/// not throw nor take memory of the device. It may still record an event there, by Stream::borrow()
/// with a `keep_alive` of its own. Thread-safe. Throws InvalidArgument for a stream that nobody
/// here owns, and whatever `make` throws.
std::shared_ptr<void> stream_attachment(const Stream& stream, const void* key,
                                        const std::function<std::shared_ptr<void>()>& make);

}  // namespace kernwright
