# What the jit room's tests need beside their sources: the fake driver of the core room's tests.
target_sources(test_jit PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/core/fake_driver.cpp")
