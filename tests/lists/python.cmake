# The Python front end: unittest, no packages. The interpreter loads the library of this build.
find_package(Python3 3.9 COMPONENTS Interpreter)

add_executable(python_layout python/layout.c)
target_include_directories(python_layout PRIVATE ${PROJECT_SOURCE_DIR}/include)

set(python_environment
    "PYTHONPATH=${PROJECT_SOURCE_DIR}/python"
    "PYTHONDONTWRITEBYTECODE=1"
    "POLYCCL_LIBRARY=$<TARGET_FILE:polyccl>"
    "POLYCCL_COMMAND=$<TARGET_FILE:polyccl_tool>"
    "POLYCCL_LAYOUT=$<TARGET_FILE:python_layout>")
if(POLYCCL_SANITIZE MATCHES "address")
  # An interpreter without ASan must load its runtime first, and never frees everything itself.
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE asan
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(APPEND python_environment "LD_PRELOAD=${asan}" "ASAN_OPTIONS=detect_leaks=0")
endif()

if(Python3_FOUND AND NOT POLYCCL_SANITIZE MATCHES "thread")
  foreach(name layout program plan msccl)
    add_test(NAME python_${name} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/python/test_${name}.py)
    set_tests_properties(python_${name} PROPERTIES ENVIRONMENT "${python_environment}" TIMEOUT 120
                         LABELS python SKIP_RETURN_CODE 77)
  endforeach()
endif()
