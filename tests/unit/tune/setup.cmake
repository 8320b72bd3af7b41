# The failing file system of the base room's tests.
target_sources(test_tune PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/base/fault_fs.cpp")
