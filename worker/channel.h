// Messages between two processes over one socket, with descriptors that travel along.
#pragma once

#include "base/errors.h"
#include "base/file_system.h"

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace kernwright {

/// The process at the other end of a channel has ended or closed it.
class PeerGone : public Error {
 public:
  using Error::Error;
};

struct Message {
  std::vector<std::byte> bytes;
  std::vector<FileHandle> files;
};

/// One end of a stream socket. One thread at a time sends, one receives. A call that throws may
/// have moved a part of its message: the channel is of no use afterwards.
class Channel {
 public:
  /// Called at least every 20 ms while a call waits; ends the wait by an exception.
  using WhileWaiting = std::function<void()>;

  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMaxFiles = 64;

  explicit Channel(FileHandle socket) : socket_(std::move(socket)) {}

  /// Two connected ends, both closed on exec. Throws Error.
  static std::pair<Channel, Channel> make_pair();

  /// Sends a message; the peer gets duplicates of `files`. Throws PeerGone, InvalidArgument above
  /// the limits, what `waiting` throws.
  void send(std::span<const std::byte> bytes, std::span<const int> files = {},
            const WhileWaiting& waiting = {});

  /// The next message. Throws PeerGone, Error for bytes that are no message, and the errors of
  /// `waiting`.
  Message receive(const WhileWaiting& waiting = {});

  int descriptor() const noexcept { return socket_.get(); }
  /// Forgets the descriptor without closing it.
  void release() noexcept { socket_.release(); }

 private:
  void wait_for(short events, const WhileWaiting& waiting);
  void read_all(std::span<std::byte> into, std::vector<FileHandle>* files,
                const WhileWaiting& waiting);

  FileHandle socket_;
};

}  // namespace kernwright
