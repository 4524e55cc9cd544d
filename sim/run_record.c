#include "sim/run_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/outfile.h"

static char *join(const char *folder, const char *name, struct err *err)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) >= 0) return path;
    err_set(err, ERR_FAILED, "out of memory");
    return NULL;
}

static int make_temporary(struct run_record *record, struct err *err)
{
    const char *parent = getenv("TMPDIR");
    record->folder = join(parent && *parent ? parent : "/tmp", "pagesim-XXXXXX", err);
    if (!record->folder) return -1;
    if (!mkdtemp(record->folder)) {
        err_set(err, ERR_FAILED, "%s: %s", record->folder, strerror(errno));
        free(record->folder);
        record->folder = NULL;
        return -1;
    }
    record->temporary = true;
    return 0;
}

static int make_folder(struct run_record *record, const char *folder, struct err *err)
{
    struct stat facts;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return err_set(err, ERR_FAILED, "--record: %s: %s", folder, strerror(errno));
    if (stat(folder, &facts) != 0 || !S_ISDIR(facts.st_mode)) return err_set(err, ERR_FAILED, "--record: %s: is no folder", folder);
    record->folder = strdup(folder);
    return record->folder ? 0 : err_set(err, ERR_FAILED, "out of memory");
}

/* A file of an earlier run would be taken for one of this. */
static int choose(struct run_record *record, enum page_detail detail, const char **option, struct err *err)
{
    char *path = join(record->folder, page_detail_files[detail], err);
    if (!path) return -1;
    if (*option) {
        unlink(path);
        free(path);
        return 0;
    }
    *option = record->paths[detail] = path;
    return 0;
}

/* A page that cannot be written is found before the work. */
static int probe(const char *path, struct err *err)
{
    struct outfile *file = outfile_open(path, err);
    if (!file) return -1;
    outfile_abandon(file);
    return 0;
}

int run_record_open(struct run_record *record, struct options *o, struct err *err)
{
    if (!o->record && !o->report) return 0;
    if (o->report && probe(o->report, err)) return -1;
    if (o->record ? make_folder(record, o->record, err) : make_temporary(record, err)) return -1;
    return choose(record, DETAIL_TIMELINE, &o->timeline, err) || choose(record, DETAIL_EVENTS, &o->events, err) ||
                   choose(record, DETAIL_OOM_LOG, &o->oom_log, err) || choose(record, DETAIL_MAP, &o->memory_map, err)
               ? -1
               : 0;
}

static int write_result(const char *folder, const struct result *result, struct err *err)
{
    char *path = join(folder, PAGE_RESULT_FILE, err);
    struct outfile *file = path ? outfile_open(path, err) : NULL;
    free(path);
    if (!file) return -1;
    result_write_json(result, outfile_stream(file));
    return outfile_commit(file, err);
}

/* The page is made from the files, as `pagesim report` makes it. */
static int write_page(const struct run_record *record, const struct options *o, struct err *err)
{
    struct page_input in = {0};
    const char *own[DETAIL_COUNT] = {[DETAIL_TIMELINE] = o->timeline, [DETAIL_EVENTS] = o->events, [DETAIL_OOM_LOG] = o->oom_log, [DETAIL_MAP] = o->memory_map};
    int status = page_input_read(&in, record->folder, err);
    for (int d = 0; status == 0 && d < DETAIL_COUNT; d++) {
        if (own[d] && strcmp(own[d], "-") != 0) status = page_input_attach(&in, 0, (enum page_detail)d, own[d], err);
    }
    struct outfile *file = status == 0 ? outfile_open(o->report, err) : NULL;
    if (file && page_write(&in, NULL, outfile_stream(file), err)) {
        outfile_abandon(file);
        file = NULL;
    }
    status = file ? outfile_commit(file, err) : -1;
    page_input_release(&in);
    return status;
}

int run_record_finish(const struct run_record *record, const struct options *o, const struct result *result, struct err *err)
{
    if (!record->folder) return 0;
    if (write_result(record->folder, result, err)) return -1;
    return o->report ? write_page(record, o, err) : 0;
}

void run_record_release(struct run_record *record)
{
    char *result = record->temporary ? join(record->folder, PAGE_RESULT_FILE, NULL) : NULL;
    if (result) unlink(result);
    free(result);
    for (int d = 0; d < DETAIL_COUNT; d++) {
        if (record->temporary && record->paths[d]) unlink(record->paths[d]);
        free(record->paths[d]);
    }
    if (record->temporary) rmdir(record->folder);
    free(record->folder);
    memset(record, 0, sizeof *record);
}
