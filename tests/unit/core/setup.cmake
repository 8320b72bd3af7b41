# Its parts have the names that fake_driver.cpp gives to its own.
set_source_files_properties(unit/core/fake_graph.cpp unit/core/fake_partitions.cpp
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
kernwright_tests_alone(core launch/launch_on_device)

# Tensor maps are of devices from 9.0 on.
add_test(NAME core_CAPABILITY=9.0 COMMAND test_core "--test-case=tensor maps:*")
set_tests_properties(core_CAPABILITY=9.0 PROPERTIES TIMEOUT 0
  ENVIRONMENT "KERNWRIGHT_SIM_CAPABILITY=9.0")
