// The part of the fake driver that captures streams and runs graphs.
#pragma once

#include "unit/core/fake_driver.h"

namespace kernwright::testing {

void fill_graphs(DriverApi& api);
void reset_captures();

/// Adds a node instead of a launch when the launch's stream is being captured; true then.
bool capture_launch(CUfunction function, const FakeLaunch& launch);
/// Notes what an event of a captured stream stands for.
void capture_event(CUevent event, CUstream stream);
/// What a forbidden call of another library does to every capture in progress.
void break_captures();

}  // namespace kernwright::testing
