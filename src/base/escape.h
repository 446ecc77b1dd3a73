/* Text inside XML and JSON. What is not UTF-8, or not allowed in XML, becomes U+FFFD, so that hostile file names make
 * no broken document. */
#ifndef PCCL_BASE_ESCAPE_H
#define PCCL_BASE_ESCAPE_H

#include "base/file.h"

/* Content and attribute values (quotes are escaped too). */
void pccl_escape_xml(pccl_text *out, const char *text);

/* A whole JSON string with its quotes. '<', '>' and '&' are written \u003c ..., so the string may stand in a <script>.
 */
void pccl_escape_json(pccl_text *out, const char *text);

/* A number with at most six decimals and no trailing zeros, in every locale; 0 for what is not finite. */
void pccl_json_number(pccl_text *out, double value);

#endif
