# What the jit module's tests need beside their sources: the fake driver of the core module's tests and
# the failing file system of the base module's.
target_sources(test_jit PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/core/fake_driver.cpp"
  "${PROJECT_SOURCE_DIR}/tests/unit/core/fake_graph.cpp"
  "${PROJECT_SOURCE_DIR}/tests/unit/base/fault_fs.cpp")
set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/unit/jit/cache_entry_test.cpp"
  "${PROJECT_SOURCE_DIR}/tests/unit/jit/pack_test.cpp" PROPERTIES
  COMPILE_DEFINITIONS "TEST_GOLDEN_FOLDER=\"${PROJECT_SOURCE_DIR}/tests/golden\"")
