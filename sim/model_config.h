/* Reading a Hugging Face config.json: what its parts share. Private to model_config*.c.
 *
 * Fields are looked up by their names in order ("num_hidden_layers|n_layer"); null counts as absent. Errors are sticky: after the
 * first, every look-up gives its default, and the reader's end reports it. */
#ifndef PAGESIM_MODEL_CONFIG_H
#define PAGESIM_MODEL_CONFIG_H

#include <jansson.h>

#include "sim/model_shape.h"

#define CONFIG_REQUIRED UINT64_MAX
#define CONFIG_DIM_MAX ((uint64_t)1 << 24)
#define CONFIG_HEADS_MAX ((uint64_t)1 << 20)

/* What a layer mixes tokens with, one letter a layer. */
enum layer_letter {
    LAYER_FULL = 'f',
    LAYER_SLIDING = 's',
    LAYER_CHUNKED = 'c',
    LAYER_FULL_SHARED = 'F', /* with the cache of an earlier layer */
    LAYER_SLIDING_SHARED = 'S',
    LAYER_STATE = 'r',
    LAYER_BOTH = 'h', /* full attention and a state */
    LAYER_NONE = '-', /* an MLP alone */
};

struct config_reader {
    json_t *text; /* the language model's part, defaults filled in */
    json_t *root; /* the file; the same when nothing is nested */
    const char *what;
    const char *type; /* model_type */
    struct model_shape *shape;
    struct err *err;
    bool failed;

    uint64_t layers, hidden, heads, kv_heads, head_dim, value_dim;
    char letters[MODEL_LAYERS_MAX + 1];
};

/* A whole number of at most `max`; the default when absent. CONFIG_REQUIRED: absence is an error. Of a list, one number a layer, the
 * largest counts, and a note says so. */
uint64_t config_count(struct config_reader *r, const char *names, uint64_t otherwise, uint64_t max);
bool config_bool(struct config_reader *r, const char *names, bool otherwise);
/* NULL when absent. */
const char *config_text(struct config_reader *r, const char *names);
json_t *config_value(const struct config_reader *r, const char *names);
/* Sets the error, once; returns -1. */
int config_fail(struct config_reader *r, const char *field, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool config_type_is(const struct config_reader *r, const char *types); /* "|opt|gpt2|" */

/* A JSON object of the class's defaults for a model_type, or NULL (model_defaults.c). */
const char *config_defaults(const char *type);
/* Letters of all layers, and which have an MLP or experts (model_config_layers.c). */
void config_layers(struct config_reader *r);
/* The mixers that attend: `sliding` for layers with a window (model_config_attention.c). */
void config_attention(struct config_reader *r, struct model_mixer *mixer, bool sliding);
/* The recurrent mixer (model_config_state.c). */
void config_state(struct config_reader *r, struct model_mixer *mixer);

#endif
