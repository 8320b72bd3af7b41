# The doubles and the choice of device of the core's tests serve here too.
target_sources(test_schedule PRIVATE "${CMAKE_CURRENT_LIST_DIR}/../core/fake_driver.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/../core/fake_graph.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/../core/fake_partitions.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/../core/test_device.cpp")
