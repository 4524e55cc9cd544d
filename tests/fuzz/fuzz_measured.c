/* Any file as a deployment's metrics: refused with one printable line, or compared with a result. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/compare_measured.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void require(bool truth)
{
    if (!truth) abort();
}

static void compare(struct measured *m)
{
    struct result result;
    struct measured_row *rows = NULL;
    size_t row_count = 0;
    struct err err = {0};
    FILE *nowhere = fopen("/dev/null", "w");
    result_init(&result);
    result_u64(&result, "preemptions", 1);
    result_u64(&result, "ttft_ns.p50", 20000000);
    if (measured_rows(m, &result, &rows, &row_count, &err) == 0 && nowhere) {
        measured_print_table("fuzz", "fuzz", m, rows, row_count, nowhere);
        measured_print_json("fuzz", "fuzz", m, rows, row_count, nowhere);
    } else {
        require(err.kind != ERR_NONE);
    }
    if (nowhere) fclose(nowhere);
    free(rows);
    result_release(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct measured m = {0}, again = {0};
    struct err err = {0};
    char path[64];
    int fd = count > 1 << 18 ? -1 : memfd_create("metrics", 0);
    if (fd < 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, bytes, count) == (ssize_t)count) {
        if (measured_read(&m, path, &err) == 0) {
            require(measured_read(&again, path, &err) == 0 && again.count == m.count);
            compare(&m);
            if (measured_subtract(&m, &again, "fuzz", &err) != 0) require(err.kind != ERR_NONE);
        } else {
            require(err.kind != ERR_NONE && err.text[0] != '\0');
            for (const char *p = err.text; *p; p++) require(*p >= ' ' && *p <= '~');
        }
    }
    close(fd);
    measured_release(&m);
    measured_release(&again);
    return 0;
}
