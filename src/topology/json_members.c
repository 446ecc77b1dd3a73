/* Members of JSON objects: their types, their presence, their values. */
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "topology/json_reader.h"

polyccl_result pccl_json_refuse(const pccl_json_reader *r, const char *place, const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pccl_fail(POLYCCL_ERROR_INVALID, "%s: %s: %s", r->file, place, message);
}

polyccl_result pccl_json_prefix(const pccl_json_reader *r, const char *place, polyccl_result result) {
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: %s: ", r->file, place);
}

static const char *type_name(json_type type) {
  switch (type) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number";
    case JSON_NULL: return "null";
    default: return "true or false";
  }
}

static bool has_type(const json_t *value, json_type type) {
  return type == JSON_REAL   ? json_is_number(value)
         : type == JSON_TRUE ? json_is_boolean(value)
                             : json_typeof(value) == type;
}

polyccl_result pccl_json_check(const pccl_json_reader *r, const char *place, const json_t *object,
                               const pccl_json_member *members, size_t count) {
  if (!json_is_object(object)) {
    return pccl_json_refuse(r, place, "this must be an object");
  }
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    size_t i = 0;
    while (i < count && strcmp(members[i].name, key) != 0) {
      i++;
    }
    if (i == count) {
      return pccl_json_refuse(r, place, "the member \"%.100s\" is unknown", key);
    }
    if (!has_type(value, members[i].type)) {
      return pccl_json_refuse(r, place, "\"%s\" must be %s", key, type_name(members[i].type));
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (members[i].required && json_object_get(object, members[i].name) == NULL) {
      return pccl_json_refuse(r, place, "\"%s\" is missing", members[i].name);
    }
  }
  return POLYCCL_SUCCESS;
}

double pccl_json_number_or(const json_t *object, const char *key, double default_value) {
  const json_t *value = json_object_get(object, key);
  return value != NULL ? json_number_value(value) : default_value;
}

const char *pccl_json_string_or(const json_t *object, const char *key, const char *default_value) {
  const json_t *value = json_object_get(object, key);
  return value != NULL ? json_string_value(value) : default_value;
}

polyccl_result pccl_json_whole_or(const pccl_json_reader *r, const char *place, const json_t *object, const char *key,
                                  int32_t default_value, int32_t *number) {
  const json_t *value = json_object_get(object, key);
  json_int_t given = value != NULL ? json_integer_value(value) : default_value;
  if (value != NULL && (given < 0 || given > INT32_MAX)) {
    return pccl_json_refuse(r, place, "\"%s\" is %" JSON_INTEGER_FORMAT ", not within 0 .. %d", key, given, INT32_MAX);
  }
  *number = (int32_t)given;
  return POLYCCL_SUCCESS;
}
