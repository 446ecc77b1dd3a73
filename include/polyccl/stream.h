/* Streams, as the last argument of the calls of collectives.h. The library has none yet: the argument must be NULL, and
 * the call blocks. Any other value gives UNSUPPORTED. */
#ifndef POLYCCL_STREAM_H
#define POLYCCL_STREAM_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct polyccl_stream polyccl_stream;

#ifdef __cplusplus
}
#endif

#endif
