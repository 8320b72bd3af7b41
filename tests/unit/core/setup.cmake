# Tensor maps are of devices from 9.0 on.
add_test(NAME core_CAPABILITY=9.0 COMMAND test_core "--test-case=tensor maps:*")
set_tests_properties(core_CAPABILITY=9.0 PROPERTIES TIMEOUT 600
  ENVIRONMENT "KERNWRIGHT_SIM_CAPABILITY=9.0")
