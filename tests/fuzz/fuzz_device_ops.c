/* Operation files: read, replayed under the setting that the first byte chooses, with every invariant of the allocator checked after
 * each operation, and written as rows. Input: one byte, then the file. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/device_replay.h"
#include "sim/device_rows.h"
#include "sim/device_summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const char *const SETTINGS[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:21",
    "garbage_collection_threshold:0.5",
    "roundup_power2_divisions:[1:4,>:8]",
    "max_split_size_mb:64,garbage_collection_threshold:0.8",
    "expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.3",
};
#define SETTING_COUNT (sizeof SETTINGS / sizeof SETTINGS[0])

static void replay(const struct device_ops *ops, const struct dev_config *config)
{
    struct device_replay r;
    struct device_outcome outcome;
    struct err err = {0};
    if (device_replay_init(&r, ops, config, &err) != 0)
        return;
    for (size_t i = 0; i < ops->count && device_replay_step(&r, i, &outcome, &err) == 0; i++)
        if (dev_check(r.allocator) != NULL)
            abort();
    device_replay_release(&r);
}

static void write_rows(const struct device_ops *ops, const struct device_case *c, const char *setting)
{
    struct err err = {0};
    char *text = NULL;
    size_t bytes = 0;
    struct device_rows rows = {.out = open_memstream(&text, &bytes)};
    if (!rows.out)
        return;
    int status = device_rows_write(&rows, ops, c, "fuzz", setting, &err);
    fclose(rows.out);
    if (status == 0 && (bytes == 0 || text[bytes - 1] != '\n'))
        abort();
    if (status != 0 && bytes > 0 && err.kind != ERR_FAILED)
        abort(); /* nothing partial is written */
    free(text);
}

static void summarise(const struct device_ops *ops, const struct dev_config *config)
{
    struct device_summary summary;
    struct err err = {0};
    if (device_summary_run(ops, config, 3, &summary, &err) != 0)
        return;
    for (size_t i = 0; i < summary.ooms_kept; i++)
        if (summary.ooms[i].room_bytes + device_states_reserved(&summary.ooms[i].states) != summary.ooms[i].limit_bytes)
            abort(); /* the proof must add up */
    device_summary_release(&summary);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    struct err err = {0};
    struct device_ops ops;
    struct device_case c;
    struct dev_config config;
    if (count < 2 || count > 1 << 16)
        return 0;
    const char *setting = SETTINGS[bytes[0] % SETTING_COUNT];
    int fd = memfd_create("ops", 0);
    if (fd < 0 || write(fd, bytes + 1, count - 1) != (ssize_t)(count - 1) || device_case_init(&c, &err) != 0)
        return 0;
    c.cap_bytes = bytes[0] & 0x80 ? DEV_NONE : 256 * DEV_MIB;
    c.device_free_bytes = bytes[0] & 0x40 ? 300 * DEV_MIB : DEV_NONE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (device_case_config(&c, setting, &config, &err) != 0)
        abort();
    if (device_ops_read(path, &ops, &err) == 0) {
        replay(&ops, &config);
        write_rows(&ops, &c, setting);
        summarise(&ops, &config);
        device_ops_release(&ops);
    } else if (err.text[0] == '\0') {
        abort();
    }
    device_case_release(&c);
    close(fd);
    return 0;
}
