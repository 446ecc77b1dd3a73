/* Images in files, for the processes that come later: POLYCCL_CACHE names the folder. */
#ifndef PCCL_EXECUTOR_IMAGE_FILE_H
#define PCCL_EXECUTOR_IMAGE_FILE_H

#include "executor/image.h"

/* NULL in *image: there is no folder, no such file, or it is not what was once written there. */
polyccl_result pccl_image_read(const char *key, pccl_image **image);

/* Leaves the image there if there is a folder. A folder that cannot be written is logged once. */
void pccl_image_write(const pccl_image *image);

#endif
