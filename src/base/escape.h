/* Text inside XML and JSON. Bytes that are not UTF-8, and characters that XML does not allow, become U+FFFD, so that no
 * file name can break a document. */
#ifndef PCCL_BASE_ESCAPE_H
#define PCCL_BASE_ESCAPE_H

#include "base/file.h"

/* Appends text as XML content or as an attribute value (quotes are escaped too). */
void pccl_escape_xml(pccl_text *out, const char *text);

/* Appends text as a JSON string with its quotes. '<', '>' and '&' are written \u003c ..., so the string may stand in a
 * <script>.
 */
void pccl_escape_json(pccl_text *out, const char *text);

/* Appends a number with at most six decimals and no trailing zeros, the same in every locale; 0 if it is not finite. */
void pccl_json_number(pccl_text *out, double value);

#endif
