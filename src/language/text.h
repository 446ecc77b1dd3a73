/* Programs from memory, for the parts of the library that have programs of their own. */
#ifndef PCCL_LANGUAGE_TEXT_H
#define PCCL_LANGUAGE_TEXT_H

#include <polyccl/language.h>

/* polyccl_program_load() of a text in memory. `folder` is where require finds helpers; NULL: it finds built-in modules
 * only. */
polyccl_result pccl_program_load_text(const char *name, const char *text, size_t length, const char *folder,
                                      const polyccl_param *params, size_t count, polyccl_program **program);

#endif
