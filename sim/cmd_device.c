/* `pagesim device`: the framework's allocator, replayed from operations, and operations from users' own recordings. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/command.h"
#include "sim/device_import.h"
#include "sim/device_picture.h"
#include "sim/device_report.h"
#include "sim/device_rows.h"
#include "sim/device_snapshot_write.h"
#include "sim/outfile.h"

struct replay_task {
    const struct optset *set;
    struct device_ops ops;
    struct device_case c;
    const char **settings;
    size_t setting_count;
};

static uint64_t count_option(const struct optset *set, const char *name, uint64_t unset)
{
    const char *text = optset_text(set, name);
    uint64_t value = unset;
    if (text)
        option_parse(option_find(optset_command(set), name), text, &value, NULL); /* it was checked when it was given */
    return value;
}

static int one_argument(int argc, char **argv, const char *what, const char **path, struct err *err)
{
    if (argc == 1) {
        *path = argv[0];
        return 0;
    }
    return err_set(err, ERR_USAGE, argc == 0 ? "%s expected, found nothing" : "one %s expected, found several", what);
}

static int load_case(struct replay_task *task, struct err *err)
{
    const char *config = optset_text(task->set, "config");
    int status = config ? device_case_read(config, &task->c, err) : device_case_init(&task->c, err);
    if (status != 0)
        return -1;
    task->c.cap_bytes = count_option(task->set, "cap", task->c.cap_bytes);
    task->c.device_free_bytes = count_option(task->set, "device-free", task->c.device_free_bytes);
    return 0;
}

static int unknown_variant(const struct device_case *c, const char *name, struct err *err)
{
    char known[512] = "";
    for (size_t i = 0, n = 0; i < c->variant_count && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", c->variants[i].name);
    return err_set(err, ERR_USAGE, "--variant: found '%.60s', expected %s", name, known[0] ? known : "default, expandable, split128, gc08, "
                                                                                                     "pow2_4, split128_gc08 or exp_split128_gc08");
}

/* A setting may be called by the name of a variant; then it has no colon. */
static const char *setting_text(const struct device_case *c, const char *text)
{
    const char *named = strchr(text, ':') ? NULL : device_case_setting(c, text);
    return named ? named : text;
}

static int choose_settings(struct replay_task *task, struct err *err)
{
    const char *variant = optset_text(task->set, "variant");
    struct opt_list given = optset_values(task->set, option_find(FOR_DEVICE_REPLAY, "setting"));
    if (variant && given.count > 0)
        return err_set(err, ERR_USAGE, "--variant and --setting both choose the setting: give one");
    task->settings = calloc(given.count + 1, sizeof *task->settings);
    if (!task->settings)
        return err_set(err, ERR_FAILED, "out of memory");
    for (size_t i = 0; i < given.count; i++)
        task->settings[i] = setting_text(&task->c, given.items[i]);
    task->setting_count = given.count > 0 ? given.count : 1;
    if (given.count == 0)
        task->settings[0] = device_case_setting(&task->c, variant ? variant : "default");
    return task->settings[0] ? 0 : unknown_variant(&task->c, variant, err);
}

/* Every setting must be sound before anything is read or written. */
static int check_settings(const struct replay_task *task, struct err *err)
{
    struct dev_config config;
    for (size_t i = 0; i < task->setting_count; i++)
        if (device_case_config(&task->c, task->settings[i], &config, err) != 0)
            return -1;
    return 0;
}

typedef int device_writer(const struct device_ops *ops, const struct device_case *c, const char *setting, FILE *out, struct err *err);

static int write_beside(const struct replay_task *task, const char *option, device_writer *write, struct err *err)
{
    const char *path = optset_text(task->set, option);
    if (!path)
        return 0;
    struct outfile *file = outfile_open(path, err);
    if (!file)
        return -1;
    if (write(&task->ops, &task->c, task->settings[0], outfile_stream(file), err) == 0)
        return outfile_commit(file, err);
    outfile_abandon(file);
    return -1;
}

static int write_result(const struct replay_task *task, FILE *out, struct err *err)
{
    const struct optset *set = task->set;
    if (task->setting_count > 1 || optset_given(set, "summary") || optset_given(set, "json")) {
        struct device_report report = {
            .ops = &task->ops,
            .c = &task->c,
            .settings = task->settings,
            .setting_count = task->setting_count,
            .ooms_max = (size_t)count_option(set, "ooms", 5),
            .json = optset_given(set, "json"),
        };
        return device_report_write(&report, out, err);
    }
    const char *variant = optset_text(set, "variant");
    struct device_rows rows = {.out = out, .counters_every = count_option(set, "counters-every", 0)};
    return device_rows_write(&rows, &task->ops, &task->c, variant ? variant : device_case_variant(&task->c, task->settings[0]),
                             task->settings[0], err);
}

static int replay_task_run(struct replay_task *task, const char *path, struct err *err)
{
    if (choose_settings(task, err) != 0 || check_settings(task, err) != 0 || device_ops_read(path, &task->ops, err) != 0)
        return -1;
    const char *output = optset_text(task->set, "output");
    struct outfile *file = outfile_open(output ? output : "-", err);
    int status = -1;
    if (!file)
        return -1;
    if (write_result(task, outfile_stream(file), err) == 0 && write_beside(task, "snapshot", device_snapshot_write, err) == 0 &&
        write_beside(task, "picture", device_picture_write, err) == 0)
        status = outfile_commit(file, err);
    else
        outfile_abandon(file);
    return status;
}

static int run_replay(const struct optset *set, int argc, char **argv, struct err *err)
{
    struct replay_task task = {.set = set};
    const char *path = NULL;
    if (one_argument(argc, argv, "operation file", &path, err) != 0 || load_case(&task, err) != 0)
        return -1;
    int status = replay_task_run(&task, path, err);
    device_ops_release(&task.ops);
    device_case_release(&task.c);
    free(task.settings);
    return status == 0 ? COMMAND_DONE : -1;
}

static int write_import(const struct optset *set, const struct device_snapshot *snapshot, const char *path, struct err *err)
{
    struct device_import import;
    const char *output = optset_text(set, "output");
    bool summary = optset_given(set, "summary");
    struct outfile *file = outfile_open(output ? output : "-", err);
    if (!file)
        return -1;
    if (device_import_write(snapshot, summary ? NULL : outfile_stream(file), &import, err) != 0) {
        outfile_abandon(file);
        return -1;
    }
    if (summary)
        device_import_print(&import, path, outfile_stream(file));
    else
        fprintf(stderr, "%s: %" PRIu64 " allocations, %" PRIu64 " frees, %" PRIu64 " out of memory, %zu segments at the start\n", path,
                import.allocs, import.frees, import.ooms, import.start_segments);
    return outfile_commit(file, err);
}

static int run_import(const struct optset *set, int argc, char **argv, struct err *err)
{
    struct device_snapshot snapshot;
    const char *path = NULL;
    if (one_argument(argc, argv, "snapshot", &path, err) != 0 ||
        device_snapshot_read(path, count_option(set, "device", 0), &snapshot, err) != 0)
        return -1;
    int status = write_import(set, &snapshot, path, err);
    device_snapshot_release(&snapshot);
    return status == 0 ? COMMAND_DONE : -1;
}

static const struct command device_replay = {
    .name = "replay",
    .summary = "replays allocations on PyTorch's CUDA caching allocator",
    .usage = "[OPTION...] OPS.jsonl[.gz]|-",
    .notes = "Without --summary and with one setting, a row for each operation, in the schema of\n"
             "the recordings: addresses, segment events, layouts, counters and the numbers of\n"
             "the out-of-memory message. Several --setting make a table, and tell which of them\n"
             "avoids each failure of the first.\n"
             "\n"
             "The model is PyTorch 2.11.0 on an NVIDIA H200; docs/device.md has the rules and\n"
             "the format of operation files.\n",
    .options = FOR_DEVICE_REPLAY,
    .arguments = COMMAND_ARGS_OWN,
    .run = run_replay,
};

static const struct command device_import = {
    .name = "import",
    .summary = "turns a PyTorch memory snapshot into an operation file",
    .usage = "[OPTION...] SNAPSHOT.pickle|-",
    .notes = "Record one with torch.cuda.memory._record_memory_history() and\n"
             "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\"). Segments that were there before\n"
             "the history began are restored at the start. Only plain data is read from the file.\n",
    .options = FOR_DEVICE_IMPORT,
    .arguments = COMMAND_ARGS_OWN,
    .run = run_import,
};

static const struct command *const parts[] = {&device_import, &device_replay, NULL};

const struct command command_device = {
    .name = "device",
    .summary = "the framework's caching allocator: replay allocations, import memory snapshots",
    .usage = "replay|import ...",
    .parts = parts,
};
