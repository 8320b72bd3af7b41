// A task's result or its exception, as bytes.
#pragma once

#include "base/log_sink.h"
#include "worker/channel.h"

#include <exception>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

struct LogLine {
  LogLevel level = LogLevel::off;
  std::string text;
};

/// The message for a result and for the lines logged on the way.
std::vector<std::byte> result_reply(const std::vector<LogLine>& log,
                                    std::span<const std::byte> result);

/// The message for an exception; unknown types become Error.
std::vector<std::byte> error_reply(const std::vector<LogLine>& log,
                                   const std::exception_ptr& error);

/// The result's bytes and files; logs the lines in the message. Throws the exception in the
/// message, with its type; Error for a message that is neither.
Message read_reply(Message reply);

}  // namespace kernwright
