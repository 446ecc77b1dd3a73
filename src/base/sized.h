/* Public structs of options begin with their size. A program that was compiled with older headers then works with a
 * newer library, and one that was compiled with newer headers is refused if it sets a member that this library does not
 * know. */
#ifndef PCCL_BASE_SIZED_H
#define PCCL_BASE_SIZED_H

#include <polyccl/types.h>

/* Copies the options that a caller gave over `own`, which holds the defaults. `given` (NULL: keep the defaults) and
 * `own` begin with a size_t that holds their size; `own_size` is the size in this library and `first_size` the size in
 * the first release. `type` names the struct in errors. INVALID: a size that no release had. UNSUPPORTED: members that
 * this library does not know are not zero. */
polyccl_result pccl_sized_read(const char *type, const void *given, void *own, size_t own_size, size_t first_size);

#endif
