polyccl_unit_test(compiler)
polyccl_unit_test(compiler_large)
polyccl_unit_test(compiler_random)
polyccl_unit_test(schedule)
polyccl_unit_test(plan_set)

add_test(NAME plan_set_cli COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/plan_set_cli.sh $<TARGET_FILE:polyccl_tool>
                                   ${PROJECT_SOURCE_DIR})
set_tests_properties(plan_set_cli PROPERTIES TIMEOUT 120)
