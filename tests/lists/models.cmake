# Models of what no test of interleavings can exhaust, checked by SPIN (Debian package spin), every state of them.
foreach(model slot_ring doorbell streams by_reference abort)
  add_test(NAME model_${model} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/models/run.sh
                                       ${CMAKE_CURRENT_SOURCE_DIR}/models/${model}.pml)
  set_tests_properties(model_${model} PROPERTIES TIMEOUT 600 LABELS models SKIP_RETURN_CODE 77)
endforeach()
