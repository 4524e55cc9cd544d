#include "sim/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/outfile.h"

#define NOT_FOUND "gnuplot: not found in PATH, expected it for figures (Debian: gnuplot-nox)"

/* The scripts' third argument, which is also the end of the file's name. */
static const char *const terminals[] = {"svg", "png"};
#define TERMINALS (sizeof terminals / sizeof terminals[0])

/* One gnuplot at work. */
struct job {
    pid_t pid;
    int messages; /* its stderr */
    struct outfile *output;
};

/* Whether `folder` holds the scripts; the style that all of them load stands for all. */
static bool has_scripts(const char *folder)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/style.gp", folder);
    return n > 0 && (size_t)n < sizeof path && access(path, R_OK) == 0;
}

/* The folder of the running program, links followed; empty when it cannot be known. */
static void program_folder(char *folder, size_t bytes)
{
    ssize_t n = readlink("/proc/self/exe", folder, bytes - 1);
    folder[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
}

int gnuplot_scripts(char *folder, size_t bytes, struct err *err)
{
    char program[PATH_MAX];
    const char *named = getenv("PAGESIM_DATADIR");
    program_folder(program, sizeof program);
    /* PREFIX/bin/pagesim; build/MODE/pagesim; build/MODE/tests/unit/test_x. */
    static const char *const beside[] = {"../share/pagesim/plot", "../../scripts/plot",
                                         "../../../../scripts/plot"};
    if (named && *named) {
        int n = snprintf(folder, bytes, "%s/plot", named);
        if (n > 0 && (size_t)n < bytes && has_scripts(folder)) return 0;
        return err_set(err, ERR_FAILED, "%.600s/plot: no plot scripts there, though PAGESIM_DATADIR says so",
                       named);
    }
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        int n = snprintf(folder, bytes, "%s/%s", program, beside[i]);
        if (n > 0 && (size_t)n < bytes && has_scripts(folder)) return 0;
    }
    return err_set(err, ERR_FAILED,
                   "plot scripts: not in %.300s/%s nor in %.300s/%s, and PAGESIM_DATADIR is not set",
                   program, beside[0], program, beside[1]);
}

static int spawn_failed(int error, struct err *err)
{
    if (error == ENOENT) return err_set(err, ERR_FAILED, NOT_FOUND);
    return err_set(err, ERR_FAILED, "gnuplot: cannot be started: %s", strerror(error));
}

/* Starts gnuplot with the two descriptors as stdout and stderr; -1: /dev/null. */
static int spawn(pid_t *pid, const char *const *argv, int out, int messages, struct err *err)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return spawn_failed(error, err);
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    const int from[2] = {out, messages};
    for (int i = 0; i < 2 && !error; i++) {
        error = from[i] >= 0
                    ? posix_spawn_file_actions_adddup2(&actions, from[i], i + 1)
                    : posix_spawn_file_actions_addopen(&actions, i + 1, "/dev/null", O_WRONLY, 0);
    }
    if (!error) error = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)(void *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error ? spawn_failed(error, err) : 0;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return status;
}

int gnuplot_check(struct err *err)
{
    pid_t pid;
    if (spawn(&pid, (const char *const[]){"gnuplot", "--version", NULL}, -1, -1, err)) return -1;
    if (wait_for(pid) != 0) return err_set(err, ERR_FAILED, "gnuplot: `gnuplot --version` failed");
    return 0;
}

/* The script writes to standard output, which is an unfinished output file. -d: the user's own start-up
 * file must not change a figure. */
static int job_start(struct job *job, const char *script, const char *csv, const char *title,
                     const char *stem, const char *terminal, struct err *err)
{
    char path[PATH_MAX];
    int ends[2];
    int n = snprintf(path, sizeof path, "%s.%s", stem, terminal);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_set(err, ERR_FAILED, "%.600s: name too long", stem);
    job->output = outfile_open(path, err);
    if (!job->output) return -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        outfile_abandon(job->output);
        return err_set(err, ERR_FAILED, "gnuplot: %s", strerror(errno));
    }
    const char *const argv[] = {"gnuplot", "-d", "-c", script, csv, "-", terminal, title, NULL};
    int status = spawn(&job->pid, argv, fileno(outfile_stream(job->output)), ends[1], err);
    close(ends[1]);
    job->messages = ends[0];
    if (status == 0) return 0;
    close(ends[0]);
    outfile_abandon(job->output);
    return -1;
}

/* Everything that comes, of which the beginning is kept. */
static void read_messages(int fd, char *text, size_t bytes)
{
    char chunk[1024];
    size_t kept = 0;
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        size_t take = (size_t)n < bytes - 1 - kept ? (size_t)n : bytes - 1 - kept;
        memcpy(text + kept, chunk, take);
        kept += take;
    }
    text[kept] = '\0';
    close(fd);
}

/* The line that matters in gnuplot's message, which is `"script" line N: what` under an echo of the command. */
static const char *message_line(char *text)
{
    char *first = NULL;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        if (strstr(line, " line ") && strchr(line, ':')) return line;
        if (!first && *line) first = line;
    }
    return first ? first : "no message";
}

static int job_finish(struct job *job, const char *script, struct err *err)
{
    char text[4096];
    struct stat facts;
    read_messages(job->messages, text, sizeof text);
    int status = wait_for(job->pid);
    bool drawn = fstat(fileno(outfile_stream(job->output)), &facts) == 0 && facts.st_size > 0;
    if (status == 0 && drawn) return outfile_commit(job->output, err);
    outfile_abandon(job->output);
    if (status == 0) return err_set(err, ERR_FAILED, "gnuplot: %.300s: drew nothing", script);
    if (WIFSIGNALED(status))
        return err_set(err, ERR_FAILED, "gnuplot: %.300s: ended by signal %d", script, WTERMSIG(status));
    return err_set(err, ERR_FAILED, "gnuplot: %.300s: %.500s", script, message_line(text));
}

/* gnuplot takes a name that begins with '<' for a command and with '$' for a data block. */
static int plain_name(char *out, size_t bytes, const char *path, struct err *err)
{
    int n = snprintf(out, bytes, "%s%s", path[0] == '/' ? "" : "./", path);
    if (n < 0 || (size_t)n >= bytes)
        return err_set(err, ERR_FAILED, "%.600s: name too long", path);
    return 0;
}

int gnuplot_draw(const char *folder, const char *figure, const char *csv, const char *title,
                 const char *stem, struct err *err)
{
    char script[PATH_MAX], data[PATH_MAX];
    struct job jobs[TERMINALS];
    size_t started = 0;
    int n = snprintf(script, sizeof script, "%s/%s.gp", folder, figure), status = 0;
    if (n < 0 || (size_t)n >= sizeof script)
        return err_set(err, ERR_FAILED, "%.600s: name too long", folder);
    if (plain_name(data, sizeof data, csv, err)) return -1;
    /* Side by side: a figure takes longer than all else that a small sweep does after its last cell. */
    for (; started < TERMINALS && status == 0; started += status == 0) {
        status = job_start(&jobs[started], script, data, title, stem, terminals[started], err);
    }
    for (size_t i = 0; i < started; i++) {
        if (job_finish(&jobs[i], script, err)) status = -1;
    }
    return status;
}
