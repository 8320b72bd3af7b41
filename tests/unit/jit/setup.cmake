# The tests of jit also need the fake driver of core's tests and the failing file system of base's.
target_sources(test_jit PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/core/fake_driver.cpp"
  "${PROJECT_SOURCE_DIR}/tests/unit/core/fake_graph.cpp"
  "${PROJECT_SOURCE_DIR}/tests/unit/core/fake_partitions.cpp"
  "${PROJECT_SOURCE_DIR}/tests/unit/base/fault_fs.cpp")
set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/unit/jit/cache/cache_entry_test.cpp"
  "${PROJECT_SOURCE_DIR}/tests/unit/jit/cache/pack_test.cpp" PROPERTIES
  COMPILE_DEFINITIONS "TEST_GOLDEN_FOLDER=\"${PROJECT_SOURCE_DIR}/tests/golden\"")
