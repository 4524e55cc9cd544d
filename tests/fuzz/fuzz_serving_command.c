/* Any text as a pasted command: refused with one printable line, or options that resolve or are refused likewise. */
#include <stdlib.h>
#include <string.h>

#include "sim/optset.h"
#include "sim/serving_command.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void require(bool truth)
{
    if (!truth) abort();
}

static void check_error(const struct err *err)
{
    require(err->kind != ERR_NONE && err->text[0] != '\0');
    for (const char *p = err->text; *p; p++) require(*p >= ' ' && *p <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct serving_notes *notes = malloc(sizeof *notes);
    char *text = malloc(count + 1);
    struct optset *set = optset_create(FOR_PLAN, false);
    struct err err = {0};
    struct options options;
    require(notes && text && set);
    memcpy(text, bytes, count);
    text[count] = '\0';
    if (optset_put(set, "command", text, &err) != 0 || serving_command_read(set, notes, &err) != 0) {
        check_error(&err);
    } else {
        for (uint32_t i = 0; i < notes->unknown_count && i < SERVING_NOTES_MAX; i++)
            for (const char *p = notes->unknown[i]; *p; p++) require(*p >= ' ' && *p <= '~');
        if (optset_finish(set, &err) != 0 || options_resolve(set, &options, &err) != 0) check_error(&err);
    }
    optset_destroy(set);
    free(text);
    free(notes);
    return 0;
}
