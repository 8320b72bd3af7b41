// The exception types of replies, and their fields.
#include "worker/reply.h"

#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "base/errors.h"
#include "jit/compile/compile_service.h"
#include "worker/message_fields.h"

namespace kernwright {
namespace {

enum class ReplyKind : std::uint8_t {
  result,
  error,
  invalid_argument,
  argument,
  argument_range,
  launch_config,
  name_not_found,
  driver_not_found,
  nvrtc_not_found,
  device_not_found,
  driver,
  device_lost,
  out_of_memory,
  device_fault,
  timeout,
  unsupported_instruction,
  compile,
  nvrtc_changed,
};

ByteWriter begin(ReplyKind kind, std::string_view message) {
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(kind));
  out.text(message);
  return out;
}

void write(ByteWriter& out, const std::vector<LogLine>& log) {
  out.u32(static_cast<std::uint32_t>(log.size()));
  for (const LogLine& line : log) {
    out.u8(static_cast<std::uint8_t>(line.level));
    out.text(line.text);
  }
}

/// Logs the worker's lines in this process.
void log_again(ByteReader& in) {
  for (std::uint32_t n = in.u32(); n > 0; --n) {
    const auto level = static_cast<LogLevel>(in.u8());
    log_message(level, read_text(in));
  }
}

std::vector<std::byte> plain(ReplyKind kind, const std::exception& error) {
  return begin(kind, error.what()).take();
}

std::vector<std::byte> of_driver(ReplyKind kind, const DriverError& error) {
  ByteWriter out = begin(kind, error.what());
  out.i32(error.code);
  out.text(error.name);
  return out.take();
}

std::vector<std::byte> of_memory(const OutOfMemory& error) {
  ByteWriter out = begin(ReplyKind::out_of_memory, error.what());
  for (const auto size : {error.requested, error.used, error.reserved, error.free}) out.u64(size);
  return out.take();
}

std::vector<std::byte> of_compile(const CompileError& error) {
  ByteWriter out = begin(ReplyKind::compile, error.what());
  out.u32(static_cast<std::uint32_t>(error.diagnostics.size()));
  for (const Diagnostic& diagnostic : error.diagnostics) write(out, diagnostic);
  out.text(error.log);
  out.text(error.source);
  write(out, error.options);
  return out.take();
}

[[noreturn]] void throw_driver(ReplyKind kind, const std::string& message, ByteReader& in) {
  const int code = in.i32();
  std::string name = read_text(in);
  if (kind == ReplyKind::device_lost) throw DeviceLost(message, code, std::move(name));
  throw DriverError(message, code, std::move(name));
}

[[noreturn]] void throw_memory(const std::string& message, ByteReader& in) {
  const std::uint64_t requested = in.u64(), used = in.u64(), reserved = in.u64();
  throw OutOfMemory(message, requested, used, reserved, in.u64());
}

[[noreturn]] void throw_compile(const std::string& message, ByteReader& in) {
  std::vector<Diagnostic> diagnostics;
  for (std::uint32_t n = in.u32(); n > 0; --n) diagnostics.push_back(read_diagnostic(in));
  std::string log = read_text(in);
  std::string source = read_text(in);
  throw CompileError(message, std::move(diagnostics), std::move(log), std::move(source),
                     read_texts(in));
}

[[noreturn]] void throw_unsupported(const std::string& message, ByteReader& in) {
  std::string opcode = read_text(in);
  throw UnsupportedInstruction(message, std::move(opcode), in.i32());
}

[[noreturn]] void throw_error(ReplyKind kind, ByteReader& in) {
  const std::string message = read_text(in);
  switch (kind) {
    case ReplyKind::invalid_argument:
      throw InvalidArgument(message);
    case ReplyKind::argument:
      throw ArgumentError(message);
    case ReplyKind::argument_range:
      throw ArgumentRangeError(message);
    case ReplyKind::launch_config:
      throw LaunchConfigError(message);
    case ReplyKind::name_not_found:
      throw NameNotFound(message);
    case ReplyKind::driver_not_found:
      throw DriverNotFound(message);
    case ReplyKind::nvrtc_not_found:
      throw NvrtcNotFound(message);
    case ReplyKind::device_not_found:
      throw DeviceNotFound(message);
    case ReplyKind::timeout:
      throw Timeout(message);
    case ReplyKind::nvrtc_changed:
      throw NvrtcChanged(message);
    case ReplyKind::driver:
    case ReplyKind::device_lost:
      throw_driver(kind, message, in);
    case ReplyKind::out_of_memory:
      throw_memory(message, in);
    case ReplyKind::device_fault:
      throw DeviceFault(read_fault(in));
    case ReplyKind::unsupported_instruction:
      throw_unsupported(message, in);
    case ReplyKind::compile:
      throw_compile(message, in);
    default:
      throw Error(message);
  }
}

std::vector<std::byte> of_exception(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CompileError& e) {
    return of_compile(e);
  } catch (const DeviceFault& e) {
    ByteWriter out = begin(ReplyKind::device_fault, e.what());
    write(out, e.report);
    return out.take();
  } catch (const DeviceLost& e) {
    return of_driver(ReplyKind::device_lost, e);
  } catch (const DriverError& e) {
    return of_driver(ReplyKind::driver, e);
  } catch (const OutOfMemory& e) {
    return of_memory(e);
  } catch (const UnsupportedInstruction& e) {
    ByteWriter out = begin(ReplyKind::unsupported_instruction, e.what());
    out.text(e.opcode);
    out.i32(e.line);
    return out.take();
  } catch (const InvalidArgument& e) {
    return plain(ReplyKind::invalid_argument, e);
  } catch (const ArgumentError& e) {
    return plain(ReplyKind::argument, e);
  } catch (const ArgumentRangeError& e) {
    return plain(ReplyKind::argument_range, e);
  } catch (const LaunchConfigError& e) {
    return plain(ReplyKind::launch_config, e);
  } catch (const NameNotFound& e) {
    return plain(ReplyKind::name_not_found, e);
  } catch (const DriverNotFound& e) {
    return plain(ReplyKind::driver_not_found, e);
  } catch (const NvrtcNotFound& e) {
    return plain(ReplyKind::nvrtc_not_found, e);
  } catch (const DeviceNotFound& e) {
    return plain(ReplyKind::device_not_found, e);
  } catch (const Timeout& e) {
    return plain(ReplyKind::timeout, e);
  } catch (const NvrtcChanged& e) {
    return plain(ReplyKind::nvrtc_changed, e);
  } catch (const std::exception& e) {
    return plain(ReplyKind::error, e);
  } catch (...) {
    return begin(ReplyKind::error, "a task of a worker threw no std::exception").take();
  }
}

}  // namespace

std::vector<std::byte> result_reply(const std::vector<LogLine>& log,
                                    std::span<const std::byte> result) {
  ByteWriter out;
  write(out, log);
  out.u8(static_cast<std::uint8_t>(ReplyKind::result));
  out.bytes(result);
  return out.take();
}

std::vector<std::byte> error_reply(const std::vector<LogLine>& log,
                                   const std::exception_ptr& error) {
  ByteWriter out;
  write(out, log);
  out.bytes(of_exception(error));
  return out.take();
}

Message read_reply(Message reply) {
  ByteReader in(reply.bytes, "a worker's reply");
  log_again(in);
  const auto kind = static_cast<ReplyKind>(in.u8());
  if (kind != ReplyKind::result) throw_error(kind, in);
  const auto begin = static_cast<std::ptrdiff_t>(in.offset());
  reply.bytes.erase(reply.bytes.begin(), reply.bytes.begin() + begin);
  return reply;
}

}  // namespace kernwright
