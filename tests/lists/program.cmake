polyccl_unit_test(program)
