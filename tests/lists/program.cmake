polyccl_unit_test(value)
polyccl_unit_test(program)
