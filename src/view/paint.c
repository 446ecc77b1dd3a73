#include "view/paint.h"

const pccl_paint pccl_op_paint[POLYCCL_STEP_OP_COUNT + 1] = {
    [POLYCCL_STEP_NOP] = {"#b4bcc6", "#59636f", "wait only"},
    [POLYCCL_STEP_SEND] = {"#2f6fb7", "#4f93dd", ""},
    [POLYCCL_STEP_RECV] = {"#2f9e6e", "#3fb984", "receive"},
    [POLYCCL_STEP_RCS] = {"#6cc3d5", "#7ad0e0", "receive, send on"},
    [POLYCCL_STEP_RRC] = {"#f0a030", "#f5b04a", "receive, reduce"},
    [POLYCCL_STEP_RRCS] = {"#d1492e", "#e8654a", "receive, reduce, store, send on"},
    [POLYCCL_STEP_RRS] = {"#9c3f86", "#c46bb0", "receive, reduce, send on"},
    [POLYCCL_STEP_COPY] = {"#7a8694", "#8b98a7", "in the same rank"},
    [POLYCCL_STEP_REDUCE] = {"#e3cf57", "#e9d76a", "in the same rank"},
    [POLYCCL_STEP_OP_COUNT] = {"#8c6d5a", "#a98a76", "other"},
};

const pccl_paint pccl_state_paint[POLYCCL_TRACE_STATE_COUNT] = {
    [POLYCCL_TRACE_BUSY] = {"#2f6fb7", "#4f93dd", "busy"},
    [POLYCCL_TRACE_WAIT_DATA] = {"#a9b8cc", "#56657a", "waits for data"},
    [POLYCCL_TRACE_WAIT_CREDIT] = {"#8e6bd0", "#a68be0", "waits for credit"},
    [POLYCCL_TRACE_WAIT_BLOCK] = {"#c9a98a", "#8a735c", "waits for a thread block"},
};
