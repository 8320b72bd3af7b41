// A header of 16 bytes with the descriptors, then the message's bytes.
#include "worker/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/byte_reader.h"
#include "base/format.h"

namespace kernwright {
namespace {

constexpr std::string_view kMagic = "KWM1";
constexpr std::size_t kHeaderBytes = 16;
constexpr int kSliceMs = 20;

[[noreturn]] void socket_failed(const char* call) {
  const int error = errno;
  if (error == EPIPE || error == ECONNRESET) throw PeerGone("the other process has gone");
  if (error == EBADF) throw PeerGone("the program closed the worker's socket");
  throw Error(format("{} on a worker's socket failed: {}", call, std::strerror(error)));
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/// Room for the control message that carries kMaxFiles descriptors.
union ControlRoom {
  std::array<char, CMSG_SPACE(sizeof(int) * Channel::kMaxFiles)> bytes;
  cmsghdr aligned;
};

void take_files(msghdr& header, std::vector<FileHandle>& files) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      files.emplace_back(FileSystem::real(), file);
    }
  }
}

}  // namespace

std::pair<Channel, Channel> Channel::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    throw Error(format("a socket for a worker cannot be made: {}", std::strerror(errno)));
  }
  FileSystem& system = FileSystem::real();
  return {Channel(FileHandle(system, ends[0])), Channel(FileHandle(system, ends[1]))};
}

void Channel::wait_for(short events, const WhileWaiting& waiting) {
  pollfd entry{socket_.get(), events, 0};
  if (!socket_) throw PeerGone("the channel is closed");
  while (::poll(&entry, 1, kSliceMs) <= 0) {
    if (waiting) waiting();
  }
}

void Channel::send(std::span<const std::byte> bytes, std::span<const int> files,
                   const WhileWaiting& waiting) {
  if (bytes.size() > kMaxBytes || files.size() > kMaxFiles) {
    throw InvalidArgument(format("a message of {} bytes and {} files: at most {} and {}",
                                 bytes.size(), files.size(), kMaxBytes, kMaxFiles));
  }
  ByteWriter header;
  header.bytes(std::as_bytes(std::span(kMagic.data(), kMagic.size())));
  header.u32(static_cast<std::uint32_t>(files.size()));
  header.u64(bytes.size());
  ControlRoom room{};
  std::size_t sent = 0;
  while (sent < kHeaderBytes + bytes.size()) {
    const bool in_header = sent < kHeaderBytes;
    const auto rest = in_header ? header.data().subspan(sent) : bytes.subspan(sent - kHeaderBytes);
    iovec part{const_cast<std::byte*>(rest.data()), rest.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent == 0 && !files.empty()) {
      message.msg_control = room.bytes.data();
      message.msg_controllen = CMSG_SPACE(files.size_bytes());
      cmsghdr* control = CMSG_FIRSTHDR(&message);
      control->cmsg_level = SOL_SOCKET;
      control->cmsg_type = SCM_RIGHTS;
      control->cmsg_len = CMSG_LEN(files.size_bytes());
      std::memcpy(CMSG_DATA(control), files.data(), files.size_bytes());
    }
    const ssize_t count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (would_block()) {
      wait_for(POLLOUT, waiting);
    } else {
      socket_failed("sending");
    }
  }
}

void Channel::read_all(std::span<std::byte> into, std::vector<FileHandle>* files,
                       const WhileWaiting& waiting) {
  std::size_t have = 0;
  while (have < into.size()) {
    ControlRoom room{};
    iovec part{into.data() + have, into.size() - have};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (files != nullptr) {
      message.msg_control = room.bytes.data();
      message.msg_controllen = room.bytes.size();
    }
    const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (count > 0) {
      if (files != nullptr) take_files(message, *files);
      have += static_cast<std::size_t>(count);
    } else if (count == 0) {
      throw PeerGone("the other process has gone");
    } else if (would_block()) {
      wait_for(POLLIN, waiting);
    } else {
      socket_failed("receiving");
    }
  }
}

Message Channel::receive(const WhileWaiting& waiting) {
  Message message;
  std::array<std::byte, kHeaderBytes> header{};
  read_all(header, &message.files, waiting);
  ByteReader in(header, "a worker's message");
  in.expect(kMagic);
  const std::uint32_t files = in.u32();
  const std::uint64_t size = in.u64();
  if (size > kMaxBytes || files != message.files.size()) {
    throw Error(format("a worker's message claims {} bytes and {} files; {} files came", size,
                       files, message.files.size()));
  }
  message.bytes.resize(size);
  read_all(message.bytes, nullptr, waiting);
  return message;
}

}  // namespace kernwright
