/* Prints the layout of the structures that python/polyccl/_library.py mirrors: "structure field offset size" a line,
 * and "structure . size". test_layout.py compares. */
#include <stddef.h>
#include <stdio.h>

#include <polyccl/compile.h>
#include <polyccl/plan.h>
#include <polyccl/program.h>

#define SIZE(type) printf(#type " . %zu\n", sizeof(type))
#define FIELD(type, field) printf(#type " " #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field))

static void program_layouts(void) {
  SIZE(polyccl_location);
  FIELD(polyccl_location, file);
  FIELD(polyccl_location, line);
  SIZE(polyccl_leaf);
  FIELD(polyccl_leaf, rank);
  FIELD(polyccl_leaf, chunk);
  SIZE(polyccl_ref);
  FIELD(polyccl_ref, rank);
  FIELD(polyccl_ref, buffer);
  FIELD(polyccl_ref, index);
  FIELD(polyccl_ref, size);
  FIELD(polyccl_ref, stamp);
  SIZE(polyccl_hints);
  FIELD(polyccl_hints, channel);
  FIELD(polyccl_hints, send_tb);
  FIELD(polyccl_hints, recv_tb);
  SIZE(polyccl_program_config);
  FIELD(polyccl_program_config, size);
  FIELD(polyccl_program_config, name);
  FIELD(polyccl_program_config, collective);
  FIELD(polyccl_program_config, ranks);
  FIELD(polyccl_program_config, chunks);
  FIELD(polyccl_program_config, chunks_out);
  FIELD(polyccl_program_config, inplace);
  FIELD(polyccl_program_config, root);
  FIELD(polyccl_program_config, peer);
  FIELD(polyccl_program_config, protocol);
  FIELD(polyccl_program_config, instances);
  FIELD(polyccl_program_config, replication);
  FIELD(polyccl_program_config, min_bytes);
  FIELD(polyccl_program_config, max_bytes);
  FIELD(polyccl_program_config, manual);
  FIELD(polyccl_program_config, no_fusion);
  SIZE(polyccl_program_summary);
  FIELD(polyccl_program_summary, ranks);
  FIELD(polyccl_program_summary, chunks);
  FIELD(polyccl_program_summary, operations);
  FIELD(polyccl_program_summary, remote);
  FIELD(polyccl_program_summary, longest);
  FIELD(polyccl_program_summary, identical);
  SIZE(polyccl_compile_options);
  FIELD(polyccl_compile_options, size);
  FIELD(polyccl_compile_options, placement);
  FIELD(polyccl_compile_options, policy);
  FIELD(polyccl_compile_options, schedule);
  FIELD(polyccl_compile_options, topology);
  FIELD(polyccl_compile_options, max_tbs);
  FIELD(polyccl_compile_options, bytes);
  FIELD(polyccl_compile_options, seconds);
  FIELD(polyccl_compile_options, dump);
  FIELD(polyccl_compile_options, dump_to);
  FIELD(polyccl_compile_options, no_verify);
  FIELD(polyccl_compile_options, instances);
  FIELD(polyccl_compile_options, no_fusion);
  FIELD(polyccl_compile_options, times);
}

static void plan_layouts(void) {
  SIZE(polyccl_step);
  FIELD(polyccl_step, op);
  FIELD(polyccl_step, src_buf);
  FIELD(polyccl_step, dst_buf);
  FIELD(polyccl_step, flags);
  FIELD(polyccl_step, src);
  FIELD(polyccl_step, dst);
  FIELD(polyccl_step, count);
  FIELD(polyccl_step, recv);
  FIELD(polyccl_step, send);
  FIELD(polyccl_step, wait);
  FIELD(polyccl_step, waits);
  FIELD(polyccl_step, location);
  SIZE(polyccl_thread_block);
  FIELD(polyccl_thread_block, rank);
  FIELD(polyccl_thread_block, step);
  FIELD(polyccl_thread_block, steps);
  SIZE(polyccl_connection);
  FIELD(polyccl_connection, src);
  FIELD(polyccl_connection, dst);
  FIELD(polyccl_connection, channel);
  FIELD(polyccl_plan, name);
  FIELD(polyccl_plan, collective);
  FIELD(polyccl_plan, ranks);
  FIELD(polyccl_plan, chunks);
  FIELD(polyccl_plan, chunks_out);
  FIELD(polyccl_plan, inplace);
  FIELD(polyccl_plan, root);
  FIELD(polyccl_plan, peer);
  FIELD(polyccl_plan, protocol);
  FIELD(polyccl_plan, order);
  FIELD(polyccl_plan, fifo_depth);
  FIELD(polyccl_plan, min_bytes);
  FIELD(polyccl_plan, max_bytes);
  FIELD(polyccl_plan, redops);
  FIELD(polyccl_plan, rank);
  FIELD(polyccl_plan, tb);
  FIELD(polyccl_plan, step);
  FIELD(polyccl_plan, wait);
  FIELD(polyccl_plan, connection);
  FIELD(polyccl_plan, tbs);
  FIELD(polyccl_plan, steps);
  FIELD(polyccl_plan, waits);
  FIELD(polyccl_plan, connections);
  SIZE(polyccl_verify_report);
  FIELD(polyccl_verify_report, fifo_depth);
  FIELD(polyccl_verify_report, uneven);
  FIELD(polyccl_verify_report, identical);
  FIELD(polyccl_verify_report, channels);
  FIELD(polyccl_verify_report, max_tbs);
  FIELD(polyccl_verify_report, longest);
}

int main(void) {
  program_layouts();
  plan_layouts();
  return 0;
}
