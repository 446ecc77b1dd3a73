/* Where images come from: memory of this process, another rank of the communicator, a file, or else the caller makes
 * one. Whoever asks first for a key makes it or fetches it; others wait for that, at most as long as the communicator's
 * time-out, and take over if it fails. */
#ifndef PCCL_EXECUTOR_IMAGE_FIND_H
#define PCCL_EXECUTOR_IMAGE_FIND_H

#include "executor/image.h"

/* Makes the image of a key. An error that every rank would get (INVALID, LIMIT, UNSUPPORTED) may become an image by
 * pccl_image_refuse(). */
typedef polyccl_result (*pccl_image_maker)(void *context, const char *key, pccl_image **image);

/* The caller owns a reference. `key` says all that the image follows from but the library's version; it is shorter than
 * PCCL_IMAGE_KEY_BYTES. */
polyccl_result pccl_image_find(pccl_member *member, const char *key, pccl_image_maker make, void *context,
                               pccl_image **image);

/* Drops images that no rank uses: all that lie in a communicator's shared memory, and of others all but a few. */
void pccl_images_trim(void);

#endif
