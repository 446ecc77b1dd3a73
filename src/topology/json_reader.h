/* Reading a topology from JSON. json_read.c reads the document, json_models.c its device models, json_members.c the
 * members of an object. Every member must be known, have the right type and lie within its bounds; messages name it:
 * "cluster.json: links[3].bandwidth: ...". */
#ifndef PCCL_TOPOLOGY_JSON_READER_H
#define PCCL_TOPOLOGY_JSON_READER_H

#include <jansson.h>

#include "topology/topology.h"

/* Names in alphabetical order, each with its index. */
typedef struct pccl_json_name {
  const char *name;
  int32_t index;
} pccl_json_name;

typedef struct pccl_json_names {
  pccl_json_name *data;
  size_t len;
} pccl_json_names;

typedef struct pccl_json_reader {
  const char *file;
  pccl_builder builder;
  pccl_json_names machines, nodes; /* filled once all of them have been read */
} pccl_json_reader;

typedef struct pccl_json_member {
  const char *name;
  json_type type; /* JSON_REAL: any number; JSON_TRUE: true or false */
  bool required;
} pccl_json_member;

/* INVALID: "FILE: PLACE: " and the message. */
polyccl_result pccl_json_refuse(const pccl_json_reader *r, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "FILE: PLACE: " in front of the message of a failure; passes success on. */
polyccl_result pccl_json_prefix(const pccl_json_reader *r, const char *place, polyccl_result result);

/* INVALID unless `object` is an object that has all required members, no unknown ones, and each of its type. */
polyccl_result pccl_json_check(const pccl_json_reader *r, const char *place, const json_t *object,
                               const pccl_json_member *members, size_t count);

/* The value of a member whose type has been checked; `default_value` where the object has no such member. */
double pccl_json_number_or(const json_t *object, const char *key, double default_value);
const char *pccl_json_string_or(const json_t *object, const char *key, const char *default_value);

/* The same for a whole number; INVALID unless it lies within 0 .. INT32_MAX. */
polyccl_result pccl_json_whole_or(const pccl_json_reader *r, const char *place, const json_t *object, const char *key,
                                  int32_t default_value, int32_t *number);

/* Reads an element of "models" and adds it to the builder. */
polyccl_result pccl_json_read_model(pccl_json_reader *r, const char *place, const json_t *object);

#endif
