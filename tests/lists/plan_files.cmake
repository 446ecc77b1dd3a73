polyccl_unit_test(plan_files)
polyccl_unit_test(plan_xml)
polyccl_unit_test(synth)
