/* Streams of the host: queues of work that is done in order, beside the thread that issues it. The calls of
 * collectives.h take one, as NCCL's take a stream of a GPU.
 *
 * A stream holds calls, records of events, waits for events and host functions, and does them one after another. A call
 * on a stream returns at once; its buffers are the library's until the call has ended. Work of different streams goes
 * on at once, but calls of one communicator always run in the order in which this rank issued them. The data are moved
 * by a progress thread of the library, which starts with the first call on a stream.
 *
 * An error of a call ends its communicator (polyccl_comm_get_async_error()). The stream goes on with what follows, and
 * polyccl_stream_synchronize() returns the first error since it was last asked.
 *
 * Thread safety: any thread may use any stream and event at any time, but nobody may use one while it is destroyed. */
#ifndef POLYCCL_STREAM_H
#define POLYCCL_STREAM_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct polyccl_stream polyccl_stream;
typedef struct polyccl_event polyccl_event;

/* The caller owns *stream and frees it by polyccl_stream_destroy(). Errors: MEMORY, SYSTEM. */
POLYCCL_API polyccl_result polyccl_stream_create(polyccl_stream **stream);

/* Waits until all work of the stream is done, and frees it. NULL is allowed. Errors: those of
 * polyccl_stream_synchronize(); the stream is freed all the same. */
POLYCCL_API polyccl_result polyccl_stream_destroy(polyccl_stream *stream);

/* Waits until all work that was given to the stream before is done. Errors: the first error of a call on the stream
 * since it was last asked; INVALID when called by a host function. */
POLYCCL_API polyccl_result polyccl_stream_synchronize(polyccl_stream *stream);

/* SUCCESS: all work is done; IN_PROGRESS: not yet; else as polyccl_stream_synchronize(). Does not wait. */
POLYCCL_API polyccl_result polyccl_stream_query(polyccl_stream *stream);

/* Calls function(argument) when all work before it is done; work after it waits until the function returns. It is
 * called by a thread of the library that does nothing else. The function may block for a while and may call the
 * library, but it must not wait for a stream. Errors: MEMORY, SYSTEM. */
POLYCCL_API polyccl_result polyccl_stream_host_function(polyccl_stream *stream, void (*function)(void *argument),
                                                        void *argument);

/* An event stands for a point in a stream. The caller owns *event and frees it by polyccl_event_destroy(), when it
 * likes. Errors: MEMORY. */
POLYCCL_API polyccl_result polyccl_event_create(polyccl_event **event);
POLYCCL_API void polyccl_event_destroy(polyccl_event *event);

/* The event stands for all work that was given to the stream before. Recording it again moves it. Errors: MEMORY. */
POLYCCL_API polyccl_result polyccl_event_record(polyccl_event *event, polyccl_stream *stream);

/* Work that is given to the stream later waits for what the event stands for now. An event that was never recorded
 * stands for nothing. Errors: MEMORY. */
POLYCCL_API polyccl_result polyccl_stream_wait_event(polyccl_stream *stream, polyccl_event *event);

/* SUCCESS: what the event stands for is done; IN_PROGRESS: not yet. Does not wait. */
POLYCCL_API polyccl_result polyccl_event_query(polyccl_event *event);
POLYCCL_API polyccl_result polyccl_event_synchronize(polyccl_event *event);

#ifdef __cplusplus
}
#endif

#endif
