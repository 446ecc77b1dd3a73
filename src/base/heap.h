/* A binary heap in a growing array: PCCL_HEAP(task_heap, task_entry, earlier) makes the type task_heap (a PCCL_VEC of
 * task_entry; all zero is empty; pccl_vec_free() frees it) and
 *
 *   bool task_heap_push(task_heap *heap, task_entry entry);   false: no memory, and the heap is unchanged
 *   task_entry task_heap_pop(task_heap *heap);                the earliest entry; the heap must not be empty
 *
 * where `bool earlier(const task_entry *a, const task_entry *b)` is a strict order. The functions are static inline,
 * since heaps are the inner loops of their users; the simulator's event queue, whose entries change their keys in
 * place, is src/simulator/queue.h. */
#ifndef PCCL_BASE_HEAP_H
#define PCCL_BASE_HEAP_H

#include "base/vec.h"

#define PCCL_HEAP(name, type, earlier)                                                       \
  typedef PCCL_VEC(type) name;                                                               \
  static inline bool name##_push(name *heap, type entry) {                                   \
    if (!pccl_vec_reserve(heap, 1)) {                                                        \
      return false;                                                                          \
    }                                                                                        \
    size_t at = heap->len++;                                                                 \
    for (; at > 0 && earlier(&entry, &heap->data[(at - 1) / 2]); at = (at - 1) / 2) {        \
      heap->data[at] = heap->data[(at - 1) / 2];                                             \
    }                                                                                        \
    heap->data[at] = entry;                                                                  \
    return true;                                                                             \
  }                                                                                          \
  static inline type name##_pop(name *heap) {                                                \
    type first = heap->data[0], last = heap->data[--heap->len];                              \
    size_t at = 0, child;                                                                    \
    while ((child = 2 * at + 1) < heap->len) {                                               \
      child += child + 1 < heap->len && earlier(&heap->data[child + 1], &heap->data[child]); \
      if (!earlier(&heap->data[child], &last)) {                                             \
        break;                                                                               \
      }                                                                                      \
      heap->data[at] = heap->data[child];                                                    \
      at = child;                                                                            \
    }                                                                                        \
    heap->data[at] = last;                                                                   \
    return first;                                                                            \
  }

#endif
