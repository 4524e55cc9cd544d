#include "sim/result_read.h"

#include <jansson.h>

int result_read_line(const char *line, struct result *r)
{
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    /* Counts of 2^63 and more do not fit jansson's integers; here a close number will do. */
    if (!object) object = json_loads(line, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        return -1;
    }
    int status = 0;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (json_is_integer(value) && json_integer_value(value) >= 0) {
            result_u64(r, key, (uint64_t)json_integer_value(value));
        } else if (json_is_number(value)) {
            result_f64(r, key, json_number_value(value));
        } else if (json_is_string(value)) {
            result_text(r, key, json_string_value(value));
        } else if (json_is_boolean(value)) {
            result_bool(r, key, json_is_true(value));
        } else if (json_is_null(value)) {
            result_null(r, key);
        } else {
            status = -1;
        }
    }
    json_decref(object);
    return status || r->out_of_memory ? -1 : 0;
}
