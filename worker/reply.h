// A task's result or its exception, as bytes.
#pragma once

#include "worker/channel.h"

#include <exception>
#include <span>
#include <vector>

namespace kernwright {

/// The message for a result.
std::vector<std::byte> result_reply(std::span<const std::byte> result);

/// The message for an exception; types that are not known travel as Error.
std::vector<std::byte> error_reply(const std::exception_ptr& error);

/// The result's bytes and files. Throws the exception that the message holds, with its type; Error
/// for a message that is neither.
Message read_reply(Message reply);

}  // namespace kernwright
