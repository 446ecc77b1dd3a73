polyccl_unit_test(topology)
polyccl_unit_test(topology_files)
polyccl_unit_test(topology_nccl)

add_test(NAME topology_cli COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/topology_cli.sh $<TARGET_FILE:polyccl_tool>
                                   ${PROJECT_SOURCE_DIR})
set_tests_properties(topology_cli PROPERTIES TIMEOUT 120)
