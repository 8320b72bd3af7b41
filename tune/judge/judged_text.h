// A judged text, compiled for the devices it runs on.
#pragma once

#include "core/kernel_signature.h"
#include "jit/compile/compile_wait.h"
#include "jit/object_code.h"
#include "jit/source/source.h"
#include "tune/judge/task.h"
#include "tune/judge/verdict.h"
#include "worker/device/device_facts.h"

#include <optional>

namespace kernwright {

struct JudgedText {
  /// With line numbers, for the simulated device. Nothing where it is not of the GPU's compute
  /// capability and the text does not compile for its own.
  std::optional<ObjectCode> ptx;
  std::optional<ObjectCode> cubin;  ///< for the GPU; PTX where NVRTC does not know it
  KernelSignature signature;        ///< of the task's entry
};

/// Compiles the text and looks for forbidden or missing parts. Puts the compiler's messages into
/// `verdict`; throws Ruling, also with the messages of an error. `gpu` may be null.
JudgedText compile_judged(const Source& source, const Task& task, const DeviceFacts& simulated,
                          const DeviceFacts* gpu, Verdict& verdict, const WaitLimits& limits);

/// The parameters declared by the task's signature: of an empty kernel compiled with the task's
/// options. Without a signature there are none. Throws InvalidArgument if the signature or the
/// options do not compile with this kernel.
KernelSignature declared_signature(const Task& task, const DeviceFacts& simulated);

/// An empty kernel without parameters, for the device. If it refuses a launch, so does any kernel.
ObjectCode empty_kernel(const DeviceFacts& facts);

}  // namespace kernwright
