polyccl_unit_test(programs)
