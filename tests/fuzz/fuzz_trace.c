/* Any bytes as a trace file, compressed ones included: refused with one printable line, or read the
 * same three ways: as a stream, from memory, and after being written in our own format. The first
 * byte chooses how it is read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workloads/wl_format.h"
#include "workloads/wl_source.h"
#include "workloads/wl_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_error(const struct err *err)
{
    require(err->kind != ERR_NONE && err->text[0] != '\0');
    for (const char *at = err->text; *at != '\0'; at++)
        require(*at >= ' ' && *at <= '~');
}

static void check_request(const struct wl_request *request)
{
    uint64_t prompt = 0, output = 0;
    require(request->prompt_tokens <= WL_TOKENS_MAX && request->output_tokens <= WL_TOKENS_MAX);
    require(request->arrival_ns <= WL_TIME_NS_MAX && request->samples >= 1);
    for (size_t i = 0; i < request->prompt_spans; i++) {
        require(request->prompt[i].count > 0);
        prompt += request->prompt[i].count;
    }
    for (size_t i = 0; i < request->output_spans; i++)
        output += request->output[i].count;
    require(prompt == (request->has_content ? request->prompt_tokens : 0));
    require(output <= request->output_tokens);
}

/* Reads to the end; false, with a checked error, when the trace is refused. */
static bool read_all(struct wl_source *source)
{
    struct wl_request request;
    struct err err = { 0 };
    int rc;
    uint64_t last_ns = 0;
    while ((rc = wl_next(source, &request, &err)) == 1) {
        check_request(&request);
        require(request.arrival_ns >= last_ns);
        last_ns = request.arrival_ns;
    }
    if (rc < 0)
        check_error(&err);
    return rc == 0;
}

static void check_memory(struct wl_source *source, uint64_t checksum)
{
    struct err err = { 0 };
    struct wl_trace *trace = NULL;
    require(wl_rewind(source, &err) == 0 && wl_trace_load(source, &trace, &err) == 0);
    require(wl_trace_summary(trace)->checksum == checksum);
    struct wl_source *reader = wl_trace_open(trace);
    require(reader != NULL && read_all(reader));
    wl_close(reader);
    wl_trace_destroy(trace);
}

/* Writing may refuse (names that JSON lines cannot carry), but never changes a request. */
static void check_writing(struct wl_source *source, uint32_t block_tokens, uint64_t checksum)
{
    struct err err = { 0 };
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    require(out != NULL && wl_rewind(source, &err) == 0);
    require(wl_write(source, WL_WRITE_JSONL, out, &err) == 0);
    require(fclose(out) == 0);
    int fd = memfd_create("again", 0);
    require(fd >= 0 && write(fd, text, text_bytes) == (ssize_t)text_bytes);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct wl_options options = { .arrival_speedup_ratio = 1, .format = "pagesim_jsonl",
                                  .trace_block_tokens = block_tokens };
    struct wl_source *again;
    require(wl_open(path, &options, 1, &again, &err) == 0);
    require(read_all(again) && wl_summary(again)->checksum == checksum);
    wl_close(again);
    close(fd);
    free(text);
}

static void options_of(uint8_t choice, struct wl_options *options)
{
    static const uint32_t block_tokens[4] = { 0, 1, 16, 64 };
    *options = (struct wl_options){ .arrival_speedup_ratio = 1 };
    options->trace_block_tokens = block_tokens[choice & 3];
    options->sort = (choice & 4) != 0;
    options->skip_bad = (choice & 8) != 0;
    size_t format = choice >> 4;
    if (format > 0 && format <= wl_format_count())
        options->format = wl_format_at(format - 1)->name;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct wl_options options;
    options_of(count > 0 ? bytes[0] : 0, &options);
    int fd = memfd_create("trace", 0);
    size_t rest = count > 0 ? count - 1 : 0;
    require(fd >= 0 && (rest == 0 || write(fd, bytes + 1, rest) == (ssize_t)rest));
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct err err = { 0 };
    struct wl_source *source = NULL;
    if (wl_open(path, &options, 1, &source, &err) != 0) {
        check_error(&err);
    } else if (read_all(source)) {
        uint64_t checksum = wl_summary(source)->checksum;
        uint32_t block_tokens = wl_summary(source)->trace_block_tokens;
        check_memory(source, checksum);
        check_writing(source, block_tokens, checksum);
    }
    wl_close(source);
    close(fd);
    return 0;
}
