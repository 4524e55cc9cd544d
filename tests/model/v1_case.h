/* One simulation as the golden cases of vLLM v1 describe it: a configuration and a request trace.
 *
 * A case directory holds config.json and trace.jsonl (or trace.jsonl.gz); the format is that of
 * tests/golden/vllm-v1. Everything here is for tests: a failed memory allocation aborts. */
#ifndef TESTS_MODEL_V1_CASE_H
#define TESTS_MODEL_V1_CASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The loader refuses tokens from here on; output tokens "that occur nowhere else" are numbered
 * upwards from it. */
#define V1_FRESH_TOKEN_FIRST ((uint64_t)1 << 63)

enum v1_rules { V1_RULES_2026_08, V1_RULES_2026_04 };

/* Arrays of 32-bit numbers: block ids or request indices. Zeroed means empty. */
struct v1_list {
    uint32_t *v;
    uint32_t n;
    uint32_t capacity;
};

struct v1_config {
    enum v1_rules rules;
    uint32_t num_blocks;   /* with the null block */
    uint32_t block_tokens; /* "block_size" */
    bool enable_prefix_caching;
    bool enable_chunked_prefill;
    bool reserve_full_prompt;
    bool detail_full; /* false: "counters" */
    uint32_t max_num_seqs;
    uint32_t max_num_batched_tokens;
    uint32_t max_model_len;
    uint32_t sliding_window;               /* tokens; 0 = none */
    uint32_t long_prefill_token_threshold; /* 0 = none */
    uint32_t num_lookahead_tokens;
    double watermark; /* share of num_blocks, 0..1 */
    uint64_t max_steps;
};

struct v1_request {
    char *id;
    uint64_t arrival; /* step */
    uint64_t *prompt;
    uint32_t prompt_tokens;
    uint64_t *output;       /* NULL: each output token is one that occurs nowhere else */
    uint32_t output_tokens; /* at least 1; "output_length" */
};

/* Owns everything its requests point to. */
struct v1_case {
    struct v1_config config;
    struct v1_request *requests;
    uint32_t num_requests;
};

/* Why a case could not be loaded: "config.json: num_blocks: expected a count". */
struct v1_error {
    char text[256];
};

/* As realloc of count elements, but aborts when there is no memory. */
void *v1_resize(void *old, size_t count, size_t element_bytes);

/* Room for one more element behind the `count` that are there. For arrays that grow by this alone,
 * from NULL, or from one element made by v1_resize. */
void *v1_grow(void *old, size_t count, size_t element_bytes);

void v1_list_push(struct v1_list *list, uint32_t value);
void v1_list_release(struct v1_list *list);

/* The text of dir/name, or of dir/name.gz unpacked, NUL-terminated; the caller frees it. NULL if
 * neither can be read. */
char *v1_read_text(const char *dir, const char *name);

/* Cuts the next line off *rest; NULL at the end. Blank lines are skipped. */
char *v1_next_line(char **rest);

/* On failure *c is empty and *error says why. */
bool v1_case_load(const char *dir, struct v1_case *c, struct v1_error *error);

/* Writes dir/config.json and dir/trace.jsonl; dir is made if it does not exist. Prompts and
 * outputs are written as token ids. False with errno set when a file cannot be written. */
bool v1_case_write(const struct v1_case *c, const char *dir);

/* The configuration in one line, then one line a request, in the case format. */
void v1_case_print(const struct v1_case *c, FILE *out);

/* False where the rules say nothing: a pool without a usable block, an output of 0 tokens,
 * chunking off with max_num_batched_tokens < max_model_len, a window of 1 token. */
bool v1_case_valid(const struct v1_case *c);

struct v1_case v1_case_copy(const struct v1_case *c);
void v1_request_release(struct v1_request *r);
void v1_case_release(struct v1_case *c);

#endif
