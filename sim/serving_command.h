/* A serving command as people paste it: 'vllm serve MODEL --flag value ...', 'python -m sglang.launch_server ...',
 * 'trtllm-serve MODEL ...', with variables before it, a container around it, quotes and continued lines.
 *
 * Flags that pagesim has an option for become that option; flags that are known to change no memory are noted, and what
 * is not known is listed. Nothing is ignored silently. */
#ifndef PAGESIM_SERVING_COMMAND_H
#define PAGESIM_SERVING_COMMAND_H

#include <jansson.h>

#include "sim/optset.h"

#define SERVING_NOTES_MAX 64u
#define SERVING_NOTE_BYTES 120u

/* Three lists of texts. */
struct serving_notes {
    const char *engine; /* "vllm", "sglang", "tensorrt-llm" */
    uint32_t read_count, neutral_count, unknown_count; /* may exceed SERVING_NOTES_MAX: the rest is only counted */
    char read[SERVING_NOTES_MAX][SERVING_NOTE_BYTES];    /* "--quantization fp8" or "--tp 2: tensor-parallel-size 2" */
    char neutral[SERVING_NOTES_MAX][SERVING_NOTE_BYTES]; /* change no memory */
    char unknown[SERVING_NOTES_MAX][SERVING_NOTE_BYTES];
};

/* Reads --command of a set, if it is given, into what the set has not been given. notes may be NULL. -1 with err when the
 * text is no serving command or a value cannot be read. */
int serving_command_read(struct optset *set, struct serving_notes *notes, struct err *err);
json_t *serving_notes_json(const struct serving_notes *notes);

/* Splits as a shell does: blanks, '...', "...", backslashes; at ; | & or a line's end that no backslash continues, or a # comment, the
 * command ends. Words are written one behind another, each ended by a byte 0, into out[bytes of text + 1]. Their number, or -1 with
 * err when a quote is left open. */
int serving_command_split(const char *text, char *out, struct err *err);

#endif
