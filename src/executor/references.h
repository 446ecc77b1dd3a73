/* Messages by reference: which way a message goes, and where the other side's buffers are here. Inline parts of the
 * executor's loop. */
#ifndef PCCL_EXECUTOR_REFERENCES_H
#define PCCL_EXECUTOR_REFERENCES_H

#include "executor/execute.h"
#include "executor/trial.h"
#include "kernel/step.h"

/* Our buffer can be named to the peer. */
static inline bool lends(const pccl_execution *x, const pccl_end *end, uint8_t buffer) {
  return x->mine[buffer].region != 0 || end->same_process;
}

/* Where `reference` of the peer is here. A peer in this process may name any memory. */
static polyccl_result address_of(pccl_execution *x, const pccl_end *end, pccl_reference reference, char **address) {
  if (end->same_process) {
    *address = (char *)(uintptr_t)reference.address;
    return POLYCCL_SUCCESS;
  }
  *address = NULL;
  return reference.region == 0
             ? POLYCCL_SUCCESS
             : pccl_region_address(&x->member->regions, x->member->peer[end->peer].pid, reference, address);
}

/* The peer's buffers; false: it has not entered the call. It cannot be past it, since it waits for our message. */
static bool view_peer(pccl_execution *x, const pccl_end *end, pccl_peer **view) {
  *view = &x->member->peer[end->peer];
  if ((*view)->call == x->member->announced) {
    return true;
  }
  if (atomic_load_explicit(&x->member->board->cell[end->peer].call, memory_order_acquire) != x->member->announced) {
    return false;
  }
  for (int b = 0; b < PCCL_BUFFERS; b++) {
    polyccl_result result = address_of(x, end, x->member->board->cell[end->peer].buffer[b], &(*view)->base[b]);
    if (result != POLYCCL_SUCCESS) {
      x->failed = result;
      return false;
    }
  }
  (*view)->call = x->member->announced;
  return true;
}

/* False: it is not known yet. */
static inline bool choose_way(pccl_execution *x, const pccl_prepared_step *step, size_t bytes, pccl_way *way,
                              char **remote_base) {
  *way = PCCL_BY_SLOT;
  bool get = (x->inplace ? step->may_get_in_place : step->may_get) && lends(x, step->send, step->lent_buf);
  if (get && !(step->may_put && step->put_first)) {
    *way = PCCL_BY_GET;
    return true;
  }
  if (step->may_put) {
    pccl_peer *view;
    if (!view_peer(x, step->send, &view)) {
      return false;
    }
    *remote_base = view->base[step->remote_dst_buf];
    *way = *remote_base != NULL ? PCCL_BY_PUT : get ? PCCL_BY_GET : PCCL_BY_SLOT;
  }
  if (*way == PCCL_BY_SLOT && step->may_copy && (!x->inplace || step->may_get_in_place) &&
      wants_copy(step->send, bytes)) {
    *way = PCCL_BY_COPY;
  }
  return true;
}

/* What the sender wrote at the start of the slot; false: its memory cannot be reached. */
static inline bool read_note(pccl_execution *x, pccl_end *end, const pccl_note *note, char **remote_base) {
  if (note->way == PCCL_BY_GET) {
    if (end->noted_at == NULL || end->noted_generation != x->member->regions.generation ||
        end->noted.region != note->buffer.region || end->noted.offset != note->buffer.offset ||
        end->noted.address != note->buffer.address) {
      polyccl_result result = address_of(x, end, note->buffer, &end->noted_at);
      if (result != POLYCCL_SUCCESS) {
        x->failed = result;
        return false;
      }
      end->noted = note->buffer;
      end->noted_generation = x->member->regions.generation;
    }
    *remote_base = end->noted_at;
  }
  return true;
}

/* Where a step's message comes from and goes to. */
typedef struct route {
  char *in, *out; /* slots' payload */
  char *in_base, *out_base;
  uint64_t in_address; /* by copy: the sender's buffer, in its process */
  pccl_way in_way, out_way;
} route;

/* By copy: reads the elements [start, start + n) of every run into the step's destination. False: x->failed says why.
 */
bool pccl_fetch(pccl_execution *x, const pccl_prepared_step *step, size_t start, size_t n, uint64_t from);

/* References: finds the ways in and out, writes the note of what goes out. `bytes`: of all runs. False: the step must
 * wait. */
static inline bool find_ways(pccl_execution *x, const pccl_prepared_step *step, size_t bytes, route *way) {
  if (step->recv != NULL) {
    const pccl_note *note = (const pccl_note *)(const void *)way->in;
    way->in_way = (pccl_way)note->way;
    way->in_address = note->buffer.address;
    if (!read_note(x, step->recv, note, &way->in_base)) {
      return false;
    }
    way->in += sizeof *note;
  }
  if (step->send != NULL) {
    if (!choose_way(x, step, bytes, &way->out_way, &way->out_base)) {
      return false;
    }
    pccl_note *note = (pccl_note *)(void *)way->out;
    note->way = way->out_way;
    if (way->out_way == PCCL_BY_GET || way->out_way == PCCL_BY_COPY) {
      note->buffer = x->mine[step->lent_buf];
      step->send->lent = step->send->count + 1;
    }
    way->out += sizeof *note;
  }
  return true;
}

#endif
