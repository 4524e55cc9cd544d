/* Any bytes as a configuration file: refused with one printable line, or a set whose every cell can be
 * made, resolved and echoed. The first byte chooses between run and sweep. */
#include <stdlib.h>
#include <string.h>

#include "sim/optset.h"

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

static void use_cell(const struct optset *set, uint64_t k)
{
    struct optset *cell = optset_cell(set, k);
    struct err err = {0};
    struct options options;
    uint64_t pool_bytes;
    char text[OPTSET_ECHO_BYTES];
    const struct option_spec *spec;
    require(cell && optset_cells(cell) == 1);
    if (options_resolve(cell, &options, &err) != 0) {
        check_error(&err);
    } else {
        if (options_pool_bytes(&options, &pool_bytes, &err) != 0)
            check_error(&err);
        else
            require(pool_bytes >= options.kv_bytes_per_token * options.block_tokens);
        for (size_t i = 0; optset_echo(cell, &i, &spec, text, sizeof text);)
            require(strlen(text) < sizeof text);
    }
    optset_destroy(cell);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    bool sweep = count > 0 && bytes[0] == 's';
    struct optset *set = optset_create(sweep ? FOR_SWEEP : FOR_RUN, sweep);
    struct err err = {0};
    require(set != NULL);
    if (optset_config_text(set, (const char *)bytes + (count > 0), count - (count > 0), "f", &err) != 0 ||
        optset_finish(set, &err) != 0) {
        check_error(&err);
    } else {
        uint64_t cells = optset_cells(set);
        use_cell(set, 0);
        use_cell(set, cells / 2);
        use_cell(set, cells - 1);
    }
    optset_destroy(set);
    return 0;
}
