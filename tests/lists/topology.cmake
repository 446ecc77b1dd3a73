polyccl_unit_test(topology)
