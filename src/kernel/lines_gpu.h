/* All threads of a block read and write LL and LL128 lines together.
 *
 * LL: a thread takes 8 bytes of payload, which are two words. Each word carries its own flag, so nothing else must
 * order them. LL128: the threads poll the lines' flags, meet at a barrier, and then read 8 bytes of data each. To send,
 * they write the data, meet at a barrier, and then store the flags with release. No store wider than 8 bytes has to be
 * atomic. */
#ifndef PCCL_KERNEL_LINES_GPU_H
#define PCCL_KERNEL_LINES_GPU_H

/* Nothing to do: the threads wait where they read. */
PCCL_FN int pccl_k_lines_arrived(int protocol, const char *slot, uint64_t *at, size_t end, uint64_t message) {
  (void)protocol, (void)slot, (void)at, (void)end, (void)message;
  return 1;
}

enum { PCCL_K_UNIT = 8 };

PCCL_FN uint32_t pccl_k_ll_wait_word(const pccl_k_call *c, const uint64_t *word, uint64_t message, int *stop) {
  uint32_t polls = 0;
  for (;;) {
    uint64_t value = pccl_k_load_relaxed(word);
    if (value >> 32 == pccl_k_ll_flag(message) >> 32 || *stop) {
      return (uint32_t)value;
    }
    *stop = pccl_k_give_up(c, ++polls);
  }
}

/* The offset in the slot of payload byte `at` (a multiple of 8) of an LL128 message. */
PCCL_FN size_t pccl_k_ll128_offset(size_t at) {
  return at / PCCL_K_LL128_DATA * PCCL_K_LL128_LINE + 8 + at % PCCL_K_LL128_DATA;
}

PCCL_FN uint64_t pccl_k_unit_in(const pccl_k_call *c, int protocol, const char *in, size_t at, size_t left,
                                uint64_t message, int *stop) {
  if (protocol == PCCL_K_LL) {
    const uint64_t *word = (const uint64_t *)in + at / PCCL_K_LL_DATA;
    uint64_t value = pccl_k_ll_wait_word(c, word, message, stop);
    return left > PCCL_K_LL_DATA ? value | (uint64_t)pccl_k_ll_wait_word(c, word + 1, message, stop) << 32 : value;
  }
  return *(const pccl_k_word *)(in + pccl_k_ll128_offset(at));
}

PCCL_FN void pccl_k_unit_out(int protocol, char *out, size_t at, size_t left, uint64_t value, uint64_t message) {
  if (protocol == PCCL_K_LL) {
    uint64_t *word = (uint64_t *)out + at / PCCL_K_LL_DATA, flag = pccl_k_ll_flag(message);
    pccl_k_store_relaxed(word, flag | (uint32_t)value);
    if (left > PCCL_K_LL_DATA) {
      pccl_k_store_relaxed(word + 1, flag | value >> 32);
    }
    return;
  }
  *(pccl_k_word *)(out + pccl_k_ll128_offset(at)) = value;
}

/* Loads up to 8 bytes of user memory of any alignment; the rest of the value is 0. */
PCCL_FN uint64_t pccl_k_unit_load(const char *at, size_t bytes) {
  uint64_t value = 0;
  if (bytes >= PCCL_K_UNIT && ((uintptr_t)at & 7) == 0) {
    return *(const pccl_k_word *)at;
  }
  for (size_t i = 0; i < bytes && i < PCCL_K_UNIT; i++) {
    value |= (uint64_t)(unsigned char)at[i] << 8 * i;
  }
  return value;
}

PCCL_FN void pccl_k_unit_store(char *at, uint64_t value, size_t bytes) {
  if (bytes >= PCCL_K_UNIT && ((uintptr_t)at & 7) == 0) {
    *(pccl_k_word *)at = value;
    return;
  }
  for (size_t i = 0; i < bytes && i < PCCL_K_UNIT; i++) {
    at[i] = (char)(value >> 8 * i);
  }
}

/* True: the host told it to stop. */
PCCL_FN int pccl_k_ll128_wait(const pccl_k_call *c, const char *in, size_t at, size_t bytes, uint64_t message) {
  size_t first = at / PCCL_K_LL128_DATA, lines = (bytes + PCCL_K_LL128_DATA - 1) / PCCL_K_LL128_DATA;
  int stop = 0;
  for (size_t i = pccl_k_thread(); i < lines && !stop; i += pccl_k_threads()) {
    const uint64_t *flag = (const uint64_t *)(in + (first + i) * PCCL_K_LL128_LINE);
    uint32_t polls = 0;
    while (!stop && pccl_k_load(flag) != message + 1) {
      stop = pccl_k_give_up(c, ++polls);
    }
  }
  return pccl_k_any(stop);
}

PCCL_FN void pccl_k_ll128_publish(char *out, size_t at, size_t bytes, uint64_t message) {
  size_t first = at / PCCL_K_LL128_DATA, lines = (bytes + PCCL_K_LL128_DATA - 1) / PCCL_K_LL128_DATA;
  pccl_k_barrier();
  pccl_k_fence();
  for (size_t i = pccl_k_thread(); i < lines; i += pccl_k_threads()) {
    pccl_k_store_fenced((uint64_t *)(out + (first + i) * PCCL_K_LL128_LINE), message + 1);
  }
}

typedef struct pccl_k_message {
  const char *in; /* slots */
  char *out;
  uint64_t in_number, out_number;
  size_t at; /* payload bytes before this chunk */
  uint64_t addends;
} pccl_k_message;

/* One function per op, out of line, so that code does not grow with the number of steps. */
template <int protocol, int op>
static __device__ __noinline__ int pccl_k_lines_as(const pccl_k_call *c, pccl_k_message m, pccl_k_span src,
                                                   pccl_k_span dst, size_t n) {
  const char *in = m.in;
  char *out = m.out;
  uint64_t in_number = m.in_number, out_number = m.out_number;
  size_t at = m.at;
  size_t e = c->element, bytes = n * e, src_bytes = src.n * e, dst_bytes = dst.n * e;
  int receives = op != PCCL_K_SEND, sends = op != PCCL_K_RECV && op != PCCL_K_RRC, stop = 0;
  int reduces = op == PCCL_K_RRC || op == PCCL_K_RRCS || op == PCCL_K_RRS;
  int stores = op != PCCL_K_SEND && op != PCCL_K_RRS;
  if (protocol == PCCL_K_LL128 && receives && pccl_k_ll128_wait(c, in, at, bytes, in_number)) {
    return 1;
  }
  size_t step = (size_t)pccl_k_threads() * PCCL_K_UNIT;
  for (size_t i = (size_t)pccl_k_thread() * PCCL_K_UNIT; i < bytes; i += step) {
    uint64_t value = receives ? pccl_k_unit_in(c, protocol, in, at + i, bytes - i, in_number, &stop) : 0;
    size_t mine = i < src_bytes ? src_bytes - i : 0;
    if (op == PCCL_K_SEND) {
      value = pccl_k_unit_load(src.at + i, mine);
    } else if (reduces && mine > 0) {
      uint64_t local = pccl_k_unit_load(src.at + i, mine);
      pccl_k_reduce_unit(c, &value, &local, &value, pccl_k_min(mine, PCCL_K_UNIT) / e, m.addends);
    }
    if (stores && i < dst_bytes) {
      pccl_k_unit_store(dst.at + i, value, dst_bytes - i);
    }
    if (sends) {
      pccl_k_unit_out(protocol, out, at + i, bytes - i, value, out_number);
    }
  }
  if (protocol == PCCL_K_LL128 && sends) {
    pccl_k_ll128_publish(out, at, bytes, out_number);
  }
  return protocol == PCCL_K_LL && stop;
}

template <int protocol>
PCCL_FN int pccl_k_lines_of(const pccl_k_call *c, int op, pccl_k_message m, pccl_k_span src, pccl_k_span dst,
                            size_t n) {
  switch (op) {
    case PCCL_K_SEND: return pccl_k_lines_as<protocol, PCCL_K_SEND>(c, m, src, dst, n);
    case PCCL_K_RECV: return pccl_k_lines_as<protocol, PCCL_K_RECV>(c, m, src, dst, n);
    case PCCL_K_RCS: return pccl_k_lines_as<protocol, PCCL_K_RCS>(c, m, src, dst, n);
    case PCCL_K_RRC: return pccl_k_lines_as<protocol, PCCL_K_RRC>(c, m, src, dst, n);
    case PCCL_K_RRCS: return pccl_k_lines_as<protocol, PCCL_K_RRCS>(c, m, src, dst, n);
    case PCCL_K_RRS: return pccl_k_lines_as<protocol, PCCL_K_RRS>(c, m, src, dst, n);
    default: return 0;
  }
}

PCCL_FN int pccl_k_lines_move(const pccl_k_call *c, int protocol, int op, const char *in, uint64_t in_number, char *out,
                              uint64_t out_number, pccl_k_span src, pccl_k_span dst, size_t n, size_t at,
                              uint64_t addends) {
  pccl_k_message m = {in, out, in_number, out_number, at, addends};
  return protocol == PCCL_K_LL ? pccl_k_lines_of<PCCL_K_LL>(c, op, m, src, dst, n)
                               : pccl_k_lines_of<PCCL_K_LL128>(c, op, m, src, dst, n);
}

#endif
