#include "codegen/portable.h"

extern const unsigned char pccl_device_h[], pccl_mean_h[], pccl_float8_h[], pccl_moves_h[], pccl_elements_h[],
    pccl_lines_c_h[], pccl_lines_gpu_h[], pccl_tables_h[], pccl_interpret_h[], pccl_entry_h[];
extern const size_t pccl_device_h_size, pccl_mean_h_size, pccl_float8_h_size, pccl_moves_h_size, pccl_elements_h_size,
    pccl_lines_c_h_size, pccl_lines_gpu_h_size, pccl_tables_h_size, pccl_interpret_h_size, pccl_entry_h_size;

const pccl_portable_file pccl_portable_files[] = {
    {"device.h", pccl_device_h, &pccl_device_h_size},
    {"mean.h", pccl_mean_h, &pccl_mean_h_size},
    {"float8.h", pccl_float8_h, &pccl_float8_h_size},
    {"moves.h", pccl_moves_h, &pccl_moves_h_size},
    {"elements.h", pccl_elements_h, &pccl_elements_h_size},
    {"lines_c.h", pccl_lines_c_h, &pccl_lines_c_h_size},
    {"lines_gpu.h", pccl_lines_gpu_h, &pccl_lines_gpu_h_size},
    {"tables.h", pccl_tables_h, &pccl_tables_h_size},
    {"interpret.h", pccl_interpret_h, &pccl_interpret_h_size},
    {"entry.h", pccl_entry_h, &pccl_entry_h_size},
    {NULL, NULL, NULL},
};
