#include "sim/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_MAX_AT_ONCE 64

struct outfile {
    FILE *stream;
    char *path;      /* as the user wrote it, for messages */
    char *target;    /* what it is renamed to: links followed */
    char *temporary; /* NULL: written directly */
    int place;       /* in unfinished[] */
};

/* Names that a signal handler has to remove. */
static _Atomic(char *) unfinished[OPEN_MAX_AT_ONCE];

static void remove_unfinished(void)
{
    for (int i = 0; i < OPEN_MAX_AT_ONCE; i++) {
        char *name = atomic_load(&unfinished[i]);
        if (name) unlink(name);
    }
}

/* Only calls that are safe in a handler. The raised signal comes when the handler returns. */
static void remove_and_die(int number)
{
    remove_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

void outfile_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGABRT};
    struct sigaction action = {.sa_handler = remove_and_die};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction old;
        /* nohup's SIGHUP stays ignored. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue;
        sigaction(numbers[i], &action, NULL);
    }
    atexit(remove_unfinished);
}

static int place_take(char *name)
{
    for (int i = 0; i < OPEN_MAX_AT_ONCE; i++) {
        char *nothing = NULL;
        if (atomic_compare_exchange_strong(&unfinished[i], &nothing, name)) return i;
    }
    return -1;
}

static void outfile_destroy(struct outfile *file)
{
    if (file->place >= 0) atomic_store(&unfinished[file->place], NULL);
    free(file->path);
    free(file->target);
    free(file->temporary);
    free(file);
}

static int failed(struct err *err, const char *path)
{
    return err_set(err, ERR_FAILED, "%.600s: %s", path, strerror(errno));
}

/* A hidden name beside the target, so that the rename stays on one file system. */
static char *temporary_name(const char *target)
{
    static atomic_uint number;
    const char *slash = strrchr(target, '/');
    int folder = slash ? (int)(slash - target + 1) : 0;
    char *name = NULL;
    if (asprintf(&name, "%.*s.%s.%ld.%u.tmp", folder, target, target + folder, (long)getpid(),
                 atomic_fetch_add(&number, 1)) < 0)
        return NULL;
    return name;
}

static int open_temporary(struct outfile *file, mode_t mode, struct err *err)
{
    file->temporary = temporary_name(file->target);
    if (!file->temporary) return err_set(err, ERR_FAILED, "out of memory");
    file->place = place_take(file->temporary);
    if (file->place < 0)
        return err_set(err, ERR_FAILED, "%.600s: too many output files", file->path);
    int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return failed(err, file->path);
    file->stream = fdopen(fd, "w");
    if (file->stream) return 0;
    failed(err, file->path);
    close(fd);
    unlink(file->temporary);
    return -1;
}

static int open_named(struct outfile *file, struct err *err)
{
    struct stat facts;
    bool there = stat(file->path, &facts) == 0;
    if (there && S_ISDIR(facts.st_mode))
        return err_set(err, ERR_USAGE, "%.600s: is a directory, expected a file", file->path);
    if (there && !S_ISREG(facts.st_mode)) {
        file->stream = fopen(file->path, "we");
        return file->stream ? 0 : failed(err, file->path);
    }
    /* The file behind a link is replaced, not the link. */
    file->target = there ? realpath(file->path, NULL) : strdup(file->path);
    if (!file->target) return failed(err, file->path);
    return open_temporary(file, there ? facts.st_mode & 0777 : 0666, err);
}

struct outfile *outfile_open(const char *path, struct err *err)
{
    struct outfile *file = calloc(1, sizeof *file);
    if (file) file->place = -1;
    if (!file || !(file->path = strdup(path))) {
        err_set(err, ERR_FAILED, "out of memory");
        free(file);
        return NULL;
    }
    if (strcmp(path, "-") == 0) {
        file->stream = stdout;
    } else if (open_named(file, err) != 0) {
        outfile_destroy(file);
        return NULL;
    }
    return file;
}

FILE *outfile_stream(struct outfile *file)
{
    return file->stream;
}

/* Closes the stream; false with errno when something that was written is lost. */
static bool stream_finish(FILE *stream)
{
    if (stream == stdout) return fflush(stdout) == 0 && !ferror(stdout);
    bool sound = !ferror(stream);
    /* Why an earlier write failed is lost; what it left in the buffer fails for the same reason. */
    errno = EIO;
    if (!sound) clearerr(stream), fflush(stream);
    int before = errno;
    if (fclose(stream) == 0) {
        errno = before;
        return sound;
    }
    return false;
}

int outfile_commit(struct outfile *file, struct err *err)
{
    int status = 0;
    const char *name = file->stream == stdout ? "standard output" : file->path;
    if (!stream_finish(file->stream))
        status = failed(err, name);
    else if (file->temporary && rename(file->temporary, file->target) != 0)
        status = failed(err, name);
    if (status != 0 && file->temporary) unlink(file->temporary);
    outfile_destroy(file);
    return status;
}

void outfile_abandon(struct outfile *file)
{
    if (!file) return;
    if (file->stream != stdout) fclose(file->stream);
    if (file->temporary) unlink(file->temporary);
    outfile_destroy(file);
}
