#include <inttypes.h>

#include "allocator/device/device_allocator.h"
#include "sim/device_import.h"

static void print_line(FILE *out, const char *what, uint64_t count, uint64_t bytes)
{
    char size[32];
    fprintf(out, "  %-38s %10" PRIu64 "  %14s\n", what, count, dev_size_text(bytes, size, sizeof size));
}

static void print_end(const struct device_snapshot *s, FILE *out)
{
    uint64_t counts[2] = {0}, bytes[2] = {0}, live = 0, live_bytes = 0, free_count = 0, free_bytes = 0, waiting = 0, waiting_bytes = 0;
    for (size_t i = 0; i < s->segment_count; i++) {
        counts[s->segments[i].small]++;
        bytes[s->segments[i].small] += s->segments[i].bytes;
    }
    for (size_t i = 0; i < s->block_count; i++) {
        const struct snapshot_block *block = &s->blocks[i];
        *(block->state == SNAPSHOT_ACTIVE ? &live : block->state == SNAPSHOT_INACTIVE ? &free_count : &waiting) += 1;
        *(block->state == SNAPSHOT_ACTIVE ? &live_bytes : block->state == SNAPSHOT_INACTIVE ? &free_bytes : &waiting_bytes) += block->bytes;
    }
    fprintf(out, "at the end\n");
    print_line(out, "large segments", counts[0], bytes[0]);
    print_line(out, "small segments", counts[1], bytes[1]);
    print_line(out, "live blocks", live, live_bytes);
    if (waiting > 0)
        print_line(out, "blocks that wait for a stream", waiting, waiting_bytes);
    print_line(out, "free blocks", free_count, free_bytes);
}

void device_import_print(const struct device_import *import, const char *name, FILE *out)
{
    const struct device_snapshot *s = import->snapshot;
    char a[32], b[32];
    fprintf(out, "%s: %zu segments, %zu events, setting '%s'\n", name, s->segment_count, s->event_count, s->setting);
    fprintf(out, "at the start of the history\n");
    print_line(out, "segments", import->start_segments, import->start_bytes);
    print_line(out, "live blocks", import->start_live_blocks, import->start_live_bytes);
    fprintf(out, "in the history\n");
    fprintf(out, "  %-38s %10" PRIu64 "\n  %-38s %10" PRIu64 "\n  %-38s %10" PRIu64 "\n  %-38s %10" PRIu64 "\n", "allocations, failed ones too",
            import->allocs, "frees", import->frees, "out of memory", import->ooms, "cache emptied", import->empty_caches);
    fprintf(out, "  %-38s %10s  %14s\n", "peak reserved", "", dev_size_text(import->reserved_bytes_peak, a, sizeof a));
    if (import->cap_bytes_max != UINT64_MAX && import->cap_bytes_max >= import->cap_bytes_min)
        fprintf(out, "  memory ended between %s and %s (%" PRIu64 " and %" PRIu64 " bytes): give --cap\n",
                dev_size_text(import->cap_bytes_min, a, sizeof a), dev_size_text(import->cap_bytes_max, b, sizeof b), import->cap_bytes_min,
                import->cap_bytes_max);
    if (s->event_count > 0) {
        uint64_t first = s->events[0].time_us, last = s->events[s->event_count - 1].time_us;
        fprintf(out, "  %-38s %10s  %13.3fs\n", "time", "", last > first ? (double)(last - first) * 1e-6 : 0.0);
    }
    print_end(s, out);
    if (import->other_streams > 0)
        fprintf(out, "note: %" PRIu64 " allocations on other streams are replayed on one\n", import->other_streams);
    if (import->unknown_frees > 0)
        fprintf(out, "note: %" PRIu64 " frees of addresses that were free already are left out\n", import->unknown_frees);
    if (s->devices > 1)
        fprintf(out, "note: the file has the history of %zu devices; --device chooses\n", s->devices);
}
