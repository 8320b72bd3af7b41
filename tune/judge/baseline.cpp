// A ruling about a baseline becomes an exception.
#include "tune/judge/baseline.h"

#include <string>

#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/ruling.h"
#include "worker/worker.h"

namespace kernwright {
namespace {

[[noreturn]] void refuse(VerdictStatus status, const std::string& why) {
  throw InvalidArgument(
      format("the baseline cannot serve for the task: judged as a kernel it is \"{}\": {}",
             verdict_status_name(status), why));
}

}  // namespace

void baseline_step(const std::function<void()>& step) {
  try {
    step();
  } catch (const Ruling& ruling) {
    refuse(ruling.status, ruling.reason);
  } catch (const Timeout& error) {
    refuse(VerdictStatus::timeout, error.what());
  } catch (const UnsupportedInstruction& error) {
    refuse(VerdictStatus::compile, error.what());
  } catch (const DeviceFault& error) {
    refuse(VerdictStatus::finding, error.what());
  } catch (const LaunchConfigError& error) {
    refuse(VerdictStatus::crash, error.what());
  } catch (const DriverError& error) {  // DeviceLost too
    refuse(VerdictStatus::crash, error.what());
  } catch (const WorkerLost& error) {
    refuse(VerdictStatus::crash, error.what());
  }
}

}  // namespace kernwright
