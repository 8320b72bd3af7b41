// The part of the fake driver for captures and graphs.
#pragma once

#include "unit/core/fake_driver.h"

namespace kernwright::testing {

void fill_graphs(DriverApi& api);
void reset_captures();

/// Adds a node instead of a launch when the launch's stream is being captured; true then.
bool capture_launch(CUfunction function, const FakeLaunch& launch);
/// Notes the nodes before an event recorded on a captured stream.
void capture_event(CUevent event, CUstream stream);
/// The effect of another library's forbidden call on every capture in progress.
void break_captures();

}  // namespace kernwright::testing
