polyccl_unit_test(base)
