polyccl_unit_test(programs)
polyccl_unit_test(algorithms)
polyccl_unit_test(golden)
