polyccl_unit_test(verify)
