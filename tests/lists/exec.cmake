polyccl_unit_test(exec_ring)
polyccl_unit_test(exec_failures)

# polyccl run checks every element and exits 1 when one is wrong.
function(polyccl_run_test name)
  add_test(NAME run_${name} COMMAND polyccl_tool run ${ARGN})
  set_tests_properties(run_${name} PROPERTIES TIMEOUT 60 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()
polyccl_run_test(ring algorithms/allreduce_ring.lua -p ranks=3 --size 8:1m:16 --iters 20)
polyccl_run_test(hierarchical algorithms/allreduce_hierarchical.lua -p nodes=2 -p gpus=2 --size 8:1m:16 --iters 20)
polyccl_run_test(uneven algorithms/allreduce_ring.lua -p ranks=3 --count 1031 --dtype bf16 --offset 1 --threads --iters 20)
