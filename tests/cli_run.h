/* Runs the built program as a user would, and keeps what it said. */
#ifndef PAGESIM_CLI_RUN_H
#define PAGESIM_CLI_RUN_H

#include <stddef.h>

#define CLI_TIMED_OUT (-1000)

struct cli_result {
    int status;       /* exit status, -N when signal N ended it, CLI_TIMED_OUT */
    char *out, *err;  /* what it wrote, with a byte 0 behind */
    size_t out_bytes, err_bytes;
};

struct cli_input {
    const char *stdin_bytes; /* NULL: nothing */
    size_t stdin_count;
    const char *stdout_path; /* NULL: captured; else written there, e.g. /dev/full */
    int stdout_closed_pipe;  /* not 0: stdout is a pipe that nobody reads */
    int stdout_closed;       /* not 0: started without a stdout, as by >&- */
    const char *program;     /* NULL: pagesim; else found along PATH */
    unsigned limit_ms;       /* 0: 60 s */
};

/* argv: without the program's name, ended by NULL. input may be NULL. The program is $PAGESIM_BIN, or the one of
 * the test's own build. Fails the test when it cannot be started. Release *result with cli_release. */
void cli_run(struct cli_result *result, const struct cli_input *input, const char *const *argv);
#define CLI(result, ...) cli_run((result), NULL, (const char *const[]){__VA_ARGS__, NULL})
void cli_release(struct cli_result *result);

/* The program that cli_run starts. Static storage. */
const char *cli_program(void);

/* A new empty folder; the name is the caller's, cli_temp_remove removes both. */
char *cli_temp_dir(void);
void cli_temp_remove(char *dir);
/* dir/name, valid until the fourth next call. */
const char *cli_path(const char *dir, const char *name);
/* Writes a file dir/name and returns its name as cli_path does. */
const char *cli_write(const char *dir, const char *name, const char *bytes, size_t count);
/* The bytes of a file, with a byte 0 behind, or NULL when it cannot be read. free() it. */
char *cli_read(const char *path);
/* Number of entries in a folder: that nothing was left behind. */
size_t cli_count_entries(const char *dir);

#endif
