#include "tests/cli_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

#define ARGS_MAX 64
#define LIMIT_MS_DEFAULT 60000

/* build/MODE/tests/cli/test_x stands beside build/MODE/pagesim. */
const char *cli_program(void)
{
    static char path[4096];
    const char *named = getenv("PAGESIM_BIN");
    if (named && *named) return named;
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 16);
    assert_true(bytes > 0);
    path[bytes] = '\0';
    char *last = NULL;
    for (char *p = path; (p = strstr(p, "/tests/")); p++) last = p;
    assert_non_null(last);
    strcpy(last, "/pagesim");
    return path;
}

static char *read_stream(FILE *stream, size_t *count)
{
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    long bytes = ftell(stream);
    assert_true(bytes >= 0);
    rewind(stream);
    char *text = malloc((size_t)bytes + 1);
    assert_non_null(text);
    *count = fread(text, 1, (size_t)bytes, stream);
    text[*count] = '\0';
    return text;
}

/* In the child: no assertion may return from here. */
static void child(const struct cli_input *input, const char *const *argv, int in, int out, int err)
{
    const char *args[ARGS_MAX + 2] = {input->program ? input->program : cli_program()};
    for (size_t i = 0; argv[i]; i++) args[i + 1] = argv[i];
    int pipe_ends[2];
    if (input->stdout_closed_pipe) {
        if (pipe(pipe_ends) != 0) _exit(126);
        close(pipe_ends[0]);
        out = pipe_ends[1];
    } else if (input->stdout_path) {
        out = open(input->stdout_path, O_WRONLY);
    }
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(126);
    if (input->stdout_closed) close(1);
    execvp(args[0], (char *const *)(void *)args);
    _exit(127);
}

/* Files rather than pipes for the streams: no deadlock, so this may simply poll. */
static int wait_for(pid_t pid, unsigned limit_ms)
{
    int status;
    for (unsigned waited_ms = 0;; waited_ms++) {
        pid_t done = waitpid(pid, &status, WNOHANG);
        assert_true(done >= 0);
        if (done == pid) break;
        if (waited_ms >= limit_ms) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return CLI_TIMED_OUT;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void cli_run(struct cli_result *result, const struct cli_input *input, const char *const *argv)
{
    static const struct cli_input nothing;
    if (!input) input = &nothing;
    size_t args = 0;
    while (argv[args]) args++;
    assert_true(args <= ARGS_MAX);
    FILE *in = tmpfile(), *out = tmpfile(), *err = tmpfile();
    assert_true(in && out && err);
    if (input->stdin_bytes)
        assert_int_equal(fwrite(input->stdin_bytes, 1, input->stdin_count, in), input->stdin_count);
    rewind(in);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) child(input, argv, fileno(in), fileno(out), fileno(err));
    result->status = wait_for(pid, input->limit_ms ? input->limit_ms : LIMIT_MS_DEFAULT);
    result->out = read_stream(out, &result->out_bytes);
    result->err = read_stream(err, &result->err_bytes);
    fclose(in);
    fclose(out);
    fclose(err);
    /* 126 and 127: the child could not become the program. */
    if (result->status == 126 || result->status == 127) fail_msg("cannot run %s", cli_program());
}

void cli_release(struct cli_result *result)
{
    free(result->out);
    free(result->err);
    *result = (struct cli_result){0};
}

char *cli_temp_dir(void)
{
    const char *root = getenv("TMPDIR");
    char name[4096];
    int n = snprintf(name, sizeof name, "%s/pagesim-test-XXXXXX", root && *root ? root : "/tmp");
    assert_true(n > 0 && (size_t)n < sizeof name);
    assert_non_null(mkdtemp(name));
    char *dir = strdup(name);
    assert_non_null(dir);
    return dir;
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts;
    (void)kind;
    (void)where;
    return remove(path);
}

void cli_temp_remove(char *dir)
{
    if (!dir) return;
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(dir);
}

const char *cli_path(const char *dir, const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    int n = snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    assert_true(n > 0 && (size_t)n < sizeof paths[0]);
    return path;
}

const char *cli_write(const char *dir, const char *name, const char *bytes, size_t count)
{
    const char *path = cli_path(dir, name);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, count, stream), count);
    assert_int_equal(fclose(stream), 0);
    return path;
}

char *cli_read(const char *path)
{
    FILE *stream = fopen(path, "r");
    if (!stream) return NULL;
    size_t count;
    char *text = read_stream(stream, &count);
    fclose(stream);
    return text;
}

size_t cli_count_entries(const char *dir)
{
    DIR *stream = opendir(dir);
    assert_non_null(stream);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(stream));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(stream);
    return count;
}
