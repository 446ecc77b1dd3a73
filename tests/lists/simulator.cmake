polyccl_unit_test(simulator)
polyccl_unit_test(simulator_random)
polyccl_unit_test(simulator_share)
get_property(chakra GLOBAL PROPERTY POLYCCL_CHAKRA)
if(chakra)
  polyccl_unit_test(chakra)
endif()

add_test(NAME simulator_cli COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/simulator_cli.sh $<TARGET_FILE:polyccl_tool>
                                    ${PROJECT_SOURCE_DIR})
set_tests_properties(simulator_cli PROPERTIES TIMEOUT 120)
