/* Images between the processes of a communicator: the first that asks for a key makes the image, and leaves a copy in
 * the communicator's shared memory, where the others read it. */
#ifndef PCCL_EXECUTOR_IMAGE_SHARE_H
#define PCCL_EXECUTOR_IMAGE_SHARE_H

#include "executor/image_find.h"

/* The image of `key` from another process, or else what `make` makes, which is left for the others. */
polyccl_result pccl_image_share(pccl_member *member, const char *key, pccl_image_maker make, void *context,
                                pccl_image **image);

#endif
