# The doubles and the choice of device of the core's tests serve here too.
target_sources(test_array PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/unit/core/fake_driver.cpp"
  "${CMAKE_CURRENT_SOURCE_DIR}/unit/core/test_device.cpp")
