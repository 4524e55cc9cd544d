/* Configuration files. An own reader of sixty lines rather than inih: Debian's build of that cuts lines
 * at 200 bytes and section names at 50 without a word, and a trace's name may be longer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/optset_internal.h"

#define CONFIG_BYTES_MAX ((size_t)1 << 20)

static const struct {
    const char *section;
    uint32_t command;
} SECTIONS[] = {
    {"run", FOR_RUN},
    {"sweep", FOR_SWEEP},
    {"compare", FOR_COMPARE},
    {"cache", FOR_CACHE},
    {"policies", FOR_POLICIES},
    {"bench", FOR_BENCH},
    {"plan", FOR_PLAN},
    {"report", FOR_REPORT},
    {"edge", FOR_EDGE},
    {"explain", FOR_EXPLAIN},
    {"trace gen", FOR_TRACE_GEN},
    {"trace stats", FOR_TRACE_STATS},
    {"trace convert", FOR_TRACE_CONVERT},
    {"trace check", FOR_TRACE_CHECK},
    {"device replay", FOR_DEVICE_REPLAY},
    {"device import", FOR_DEVICE_IMPORT},
};

/* Cuts blanks off both ends, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(" \t\r", text[bytes - 1])) bytes--;
    text[bytes] = '\0';
    return text;
}

/* Ends the text where a comment begins: ';' or '#' after a blank. */
static void cut_comment(char *text)
{
    for (char *p = text; *p; p++)
        if ((*p == ';' || *p == '#') && p > text && (p[-1] == ' ' || p[-1] == '\t')) {
            *p = '\0';
            return;
        }
}

/* The command that the section is for, or 0: any. */
static uint32_t section_command(const char *name)
{
    for (size_t i = 0; i < sizeof SECTIONS / sizeof SECTIONS[0]; i++)
        if (strcmp(SECTIONS[i].section, name) == 0) return SECTIONS[i].command;
    return 0;
}

static int section_line(char *line, uint32_t *command, struct err *err)
{
    cut_comment(line);
    line = trim(line);
    size_t bytes = strlen(line);
    if (line[bytes - 1] != ']')
        return err_set(err, ERR_USAGE, "found '%.100s', expected [SECTION]", line);
    line[bytes - 1] = '\0';
    *command = section_command(trim(line + 1));
    return 0;
}

static int unknown_key(uint32_t command, const char *name, struct err *err)
{
    const char *nearest = option_nearest(command, name);
    return err_set(err, ERR_USAGE, "%.60s: unknown option%s%s%s", name,
                   nearest ? ", did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

/* Keys of other commands' sections must exist there, but their values are not looked at. */
static int key_line(struct optset *set, char *line, uint32_t command, unsigned number, struct err *err)
{
    char *equals = strchr(line, '=');
    if (!equals) return err_set(err, ERR_USAGE, "found '%.100s', expected NAME = VALUE", line);
    *equals = '\0';
    char *name = trim(line), *value = equals + 1;
    cut_comment(value);
    value = trim(value);
    for (char *p = name; *p; p++)
        if (*p == '_') *p = '-';
    if (!command) command = set->command;
    const struct option_spec *spec = option_find(command, name);
    if (!spec) return unknown_key(command, name, err);
    if (strcmp(name, "config") == 0)
        return err_set(err, ERR_USAGE, "config: belongs on the command line");
    if (command != set->command) return 0;
    if (optset_add(set, spec, value, false, number, err) == 0) return 0;
    err_prefix(err, "%s", name);
    return -1;
}

static int lines_read(struct optset *set, char *text, const char *path, struct err *err)
{
    uint32_t command = 0;
    unsigned number = 1;
    for (char *line = text; line; number++) {
        char *next = strchr(line, '\n');
        if (next) *next++ = '\0';
        line = trim(line);
        int status = 0;
        if (*line == '[')
            status = section_line(line, &command, err);
        else if (*line && *line != ';' && *line != '#')
            status = key_line(set, line, command, number, err);
        if (status != 0) {
            err_prefix(err, "%.300s:%u", path, number);
            return -1;
        }
        line = next;
    }
    return 0;
}

/* What the file says, into what the command line left open. */
static void merge(struct optset *set, struct optset *file)
{
    for (size_t i = 0; i < option_count(); i++) {
        if (set->slots[i].count > 0) continue;
        set->slots[i] = file->slots[i];
        file->slots[i] = (struct slot){0};
    }
    free(set->file);
    set->file = file->file;
    file->file = NULL;
}

int optset_config_text(struct optset *set, const char *text, size_t bytes, const char *path,
                       struct err *err)
{
    if (memchr(text, '\0', bytes))
        return err_set(err, ERR_USAGE, "%.300s: a byte 0, expected text", path);
    struct optset *file = optset_create(set->command, set->many);
    char *copy = strndup(text, bytes);
    int status = -1;
    if (!file || !copy || !(file->file = strdup(path)))
        err_set(err, ERR_FAILED, "out of memory");
    else
        status = lines_read(file, copy, path, err);
    if (status == 0) merge(set, file);
    free(copy);
    optset_destroy(file);
    return status;
}

int optset_config(struct optset *set, const char *path, struct err *err)
{
    FILE *stream = fopen(path, "r");
    if (!stream) return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
    char *text = malloc(CONFIG_BYTES_MAX + 1);
    int status = -1;
    errno = 0;
    size_t bytes = text ? fread(text, 1, CONFIG_BYTES_MAX + 1, stream) : 0;
    if (!text)
        err_set(err, ERR_FAILED, "out of memory");
    else if (ferror(stream))
        err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
    else if (bytes > CONFIG_BYTES_MAX)
        err_set(err, ERR_USAGE, "%.300s: larger than 1 MiB, expected a configuration file", path);
    else
        status = optset_config_text(set, text, bytes, path, err);
    free(text);
    fclose(stream);
    return status;
}
