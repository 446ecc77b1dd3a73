polyccl_unit_test(programs)
polyccl_unit_test(algorithms)
