if(POLYCCL_FUZZ)
  add_subdirectory(fuzz)
endif()

# Work for each unit of input; without sanitizers, for their work is not the project's.
if(NOT POLYCCL_SANITIZE)
  add_executable(work_climb fuzz/work_climb.c)
  target_link_libraries(work_climb PRIVATE polyccl_static)
  target_include_directories(work_climb PRIVATE ${PROJECT_SOURCE_DIR}/src)
  add_test(NAME work COMMAND work_climb 60)
  set_tests_properties(work PROPERTIES TIMEOUT 600)
endif()
