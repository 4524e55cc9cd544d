#include "sim/run_snapshot.h"

#include "sim/device_snapshot_write.h"
#include "sim/outfile.h"

static int check_fits(const struct device_case *c, uint64_t pool_bytes, struct err *err)
{
    struct dev_config config;
    struct dev_allocator *device = NULL;
    struct dev_allocation allocation;
    if (device_case_config(c, "", &config, err)) return -1;
    if (dev_allocator_create(&config, &device) != DEV_OK) {
        return err_set(err, ERR_FAILED, "out of memory");
    }
    enum dev_status status = dev_allocate(device, pool_bytes, &allocation);
    dev_allocator_destroy(device);
    if (status == DEV_OK) return 0;
    return err_set(err, ERR_USAGE, "--snapshot: a pool of %llu bytes does not fit on the device, an H200",
                   (unsigned long long)pool_bytes);
}

int run_snapshot_write(const char *path, uint64_t pool_bytes, struct err *err)
{
    uint64_t id = 1;
    size_t no_pool_name = 0;
    char texts[] = "\0kv_cache";
    char name[] = "run";
    struct device_op op = {.kind = DEVICE_OP_ALLOC, .slot = 0, .line = 1, .bytes = pool_bytes, .text = 1};
    struct device_ops ops = {.file = name,
                             .items = &op,
                             .count = 1,
                             .ids = &id,
                             .id_count = 1,
                             .pools = &no_pool_name,
                             .pool_count = 1,
                             .texts = texts,
                             .text_count = sizeof texts};
    struct device_case c;
    if (device_case_init(&c, err)) return -1;
    int status = check_fits(&c, pool_bytes, err);
    struct outfile *file = status == 0 ? outfile_open(path, err) : NULL;
    if (file) status = device_snapshot_write(&ops, &c, "", outfile_stream(file), err);
    else status = -1;
    if (file && status == 0) status = outfile_commit(file, err);
    else outfile_abandon(file);
    device_case_release(&c);
    return status;
}
