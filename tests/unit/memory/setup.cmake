kernwright_tests_fast(memory evictable_buffer pool/segment_heap)

# The doubles and the choice of device of the core's tests serve here too.
target_sources(test_memory PRIVATE "${CMAKE_CURRENT_LIST_DIR}/../core/fake_driver.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/../core/fake_graph.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/../core/fake_partitions.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/../core/test_device.cpp"
  "${PROJECT_SOURCE_DIR}/tests/unit/base/fault_fs.cpp")
target_compile_definitions(test_memory PRIVATE
  "KW_TRACES_FOLDER=\"${traces_folder}\"")
