/* `pagesim report` on any bytes: a page or an error that fits a line, and never markup that the bytes brought along. The first byte says
 * what the rest is: r a result, t a timeline, e events, o a log of refusals, m a memory map. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const char RESULT[] = "{\"policy\":\"prefix\",\"pool_bytes\":1000,\"requests\":1,\"refusals.episodes\":1}";

static void require(bool condition)
{
    if (!condition) abort();
}

static void check_error(const struct err *err)
{
    require(err->kind != ERR_NONE && err->text[0] != '\0');
    for (const char *p = err->text; *p; p++) require(*p >= ' ' && *p <= '~');
}

/* The bytes as a file; the name lives until the next but one call. */
static int file_of(const void *bytes, size_t count, char *name, size_t name_bytes)
{
    int fd = memfd_create("page", 0);
    require(fd >= 0);
    require(write(fd, bytes, count) == (ssize_t)count);
    require(lseek(fd, 0, SEEK_SET) == 0);
    snprintf(name, name_bytes, "/proc/self/fd/%d", fd);
    return fd;
}

/* The program's own page has no such element. */
static void check_page(const char *page)
{
    require(strstr(page, "<img") == NULL && strstr(page, "<iframe") == NULL);
    require(strstr(page, "</html>") != NULL);
}

static void write_page(const struct page_input *in, struct err *err)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    require(out != NULL);
    int status = page_write(in, NULL, out, err);
    require(fclose(out) == 0);
    if (status == 0) check_page(text);
    else check_error(err);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char kinds[] = {[DETAIL_TIMELINE] = 't', [DETAIL_EVENTS] = 'e', [DETAIL_OOM_LOG] = 'o', [DETAIL_MAP] = 'm'};
    if (count == 0) return 0;
    char result_name[40], detail_name[40];
    const char *detail = memchr(kinds, bytes[0], sizeof kinds);
    struct page_input in = {0};
    struct err err = {0};
    int fd = file_of(bytes + 1, count - 1, detail_name, sizeof detail_name);
    int result_fd = file_of(RESULT, sizeof RESULT - 1, result_name, sizeof result_name);
    if (page_input_read(&in, detail ? result_name : detail_name, &err) != 0) check_error(&err);
    else if (detail && page_input_attach(&in, 0, (enum page_detail)(detail - kinds), detail_name, &err) != 0) check_error(&err);
    else write_page(&in, &err);
    page_input_release(&in);
    close(result_fd);
    close(fd);
    return 0;
}
