/* Memory snapshots: parsed, imported, and the operations that come out replayed with every invariant checked. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/device_import.h"
#include "sim/device_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void replay(const char *path, const char *setting)
{
    struct device_ops ops;
    struct device_case c;
    struct dev_config config;
    struct device_replay r;
    struct device_outcome outcome;
    struct err err = {0}, ignored = {0};
    /* What an import writes can be read, unless the recording itself is absurd: blocks of odd sizes, requests beyond 2^48. */
    if (device_ops_read(path, &ops, &err) != 0)
        return;
    if (device_case_init(&c, &err) != 0)
        return;
    if (device_case_config(&c, setting, &config, &ignored) != 0 && device_case_config(&c, "", &config, &err) != 0)
        abort();
    if (device_replay_init(&r, &ops, &config, &err) == 0) {
        for (size_t i = 0; i < ops.count && device_replay_step(&r, i, &outcome, &err) == 0; i++)
            if (dev_check(r.allocator) != NULL)
                abort();
        device_replay_release(&r);
    }
    device_case_release(&c);
    device_ops_release(&ops);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct device_snapshot snapshot;
    struct device_import import;
    struct err err = {0};
    char path[64];
    if (count > 1 << 18 || device_snapshot_parse(bytes, count, "fuzz", 0, &snapshot, &err) != 0)
        return 0;
    int fd = memfd_create("ops", 0);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out && device_import_write(&snapshot, out, &import, &err) == 0 && fflush(out) == 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        replay(path, snapshot.setting);
    }
    if (out)
        fclose(out);
    device_snapshot_release(&snapshot);
    return 0;
}
