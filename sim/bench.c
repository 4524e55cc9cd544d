#include "sim/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double bench_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The child's figure comes through a pipe; its memory from the kernel's books. */
static int measure_once(const struct bench_case *c, double *figure, long *peak_kib, struct err *err)
{
    int ends[2], status;
    struct rusage usage;
    if (pipe(ends)) return err_set(err, ERR_FAILED, "pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        double value = c->measure(c->a);
        _exit(write(ends[1], &value, sizeof value) == (ssize_t)sizeof value ? 0 : 1);
    }
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], figure, sizeof *figure) : -1;
    close(ends[0]);
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0 ||
        got != (ssize_t)sizeof *figure) {
        return err_set(err, ERR_FAILED, "bench: the measurement '%s' failed", c->name);
    }
    if (usage.ru_maxrss > *peak_kib) *peak_kib = usage.ru_maxrss;
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int bench_measure(const struct bench_case *c, unsigned runs, struct bench_result *result,
                  struct err *err)
{
    double *figures = calloc(runs, sizeof *figures);
    if (!figures) return err_set(err, ERR_FAILED, "out of memory");
    memset(result, 0, sizeof *result);
    int status = 0;
    for (unsigned i = 0; i < runs && status == 0; i++) {
        status = measure_once(c, &figures[i], &result->peak_kib, err);
        if (status == 0 && figures[i] < 0) {
            result->skipped = true;
            break;
        }
    }
    if (status == 0 && !result->skipped) {
        qsort(figures, runs, sizeof *figures, compare);
        result->median = figures[(runs - 1) / 2];
        result->smallest = figures[0];
        result->largest = figures[runs - 1];
    }
    free(figures);
    return status;
}
