polyccl_unit_test(compiler)
