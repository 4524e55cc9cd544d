/* Pairs the results in two files. Options that have several values within a file set its cells apart and must agree in a
 * pair; those that have one value in each file are what is compared. Cells that differ in nothing but the seed of a drawn
 * workload are replications and share a table. */
#include <stdlib.h>
#include <string.h>

#include "sim/compare.h"
#include "sim/page.h"
#include "sim/trace_pool.h"

#define AXES_MAX 64u
#define VALUE_BYTES 256u

/* A result and what sets it apart from the others of its file. */
struct cell {
    const struct result *result;
    char *label; /* "block-size 16, max-num-seqs 64" */
    char *seed;  /* of a drawn workload, else "" */
    bool paired;
};

struct side {
    const char *path;
    struct page_input in;
    struct cell *cells;
};

struct files {
    struct side sides[2];
    const char *axes[AXES_MAX]; /* keys, "options.block-size" */
    size_t axis_count;
};

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_FAILED, "out of memory");
}

static void value_of(const struct result *r, const char *key, char *out, size_t bytes)
{
    const struct result_entry *entry = result_find(r, key);
    if (!entry) snprintf(out, bytes, "-");
    else if (entry->kind == RESULT_TEXT) snprintf(out, bytes, "%s", entry->text);
    else if (entry->kind == RESULT_U64) snprintf(out, bytes, "%llu", (unsigned long long)entry->u64);
    else if (entry->kind == RESULT_F64) result_format_f64(entry->f64, out, bytes);
    else snprintf(out, bytes, "-");
}

/* --- axes ------------------------------------------------------------------------------------- */

static bool varies(const struct side *side, const char *key)
{
    char first[VALUE_BYTES], other[VALUE_BYTES];
    value_of(&side->in.results[0], key, first, sizeof first);
    for (size_t i = 1; i < side->in.count; i++) {
        value_of(&side->in.results[i], key, other, sizeof other);
        if (strcmp(first, other) != 0) return true;
    }
    return false;
}

static bool seen(const struct files *f, const char *key)
{
    for (size_t i = 0; i < f->axis_count; i++) {
        if (strcmp(f->axes[i], key) == 0) return true;
    }
    return false;
}

/* The keys of one result; those of the others are nearly the same. */
static int add_axes(struct files *f, const struct result *r, struct err *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const char *key = r->entries[i].key;
        if (strncmp(key, "options.", 8) != 0 || seen(f, key)) continue;
        if (!varies(&f->sides[0], key) && !varies(&f->sides[1], key)) continue;
        if (f->axis_count == AXES_MAX) return err_set(err, ERR_INPUT, "more than %u options differ within a file", AXES_MAX);
        f->axes[f->axis_count++] = key;
    }
    return 0;
}

/* A result with other options than the one before: policies differ in theirs. */
static bool other_policy(const struct page_input *in, size_t i)
{
    char a[VALUE_BYTES], b[VALUE_BYTES];
    if (i == 0) return true;
    value_of(&in->results[i - 1], "policy", a, sizeof a);
    value_of(&in->results[i], "policy", b, sizeof b);
    return strcmp(a, b) != 0;
}

static int find_axes(struct files *f, struct err *err)
{
    for (int s = 0; s < 2; s++) {
        const struct page_input *in = &f->sides[s].in;
        for (size_t i = 0; i < in->count; i++) {
            if (other_policy(in, i) && add_axes(f, &in->results[i], err)) return -1;
        }
    }
    return 0;
}

/* --- cells ------------------------------------------------------------------------------------ */

static bool is_drawn(const struct result *r)
{
    const struct result_entry *trace = result_find(r, "trace");
    return trace && trace->kind == RESULT_TEXT && trace_is_drawn(trace->text);
}

static int make_cell(const struct files *f, struct cell *cell, const struct result *r, struct err *err)
{
    char *label = NULL, value[VALUE_BYTES];
    size_t bytes;
    bool drawn = is_drawn(r);
    FILE *out = open_memstream(&label, &bytes);
    if (!out) return out_of_memory(err);
    for (size_t i = 0; i < f->axis_count; i++) {
        if (drawn && strcmp(f->axes[i], "options.seed") == 0) continue;
        value_of(r, f->axes[i], value, sizeof value);
        fprintf(out, "%s%s %s", ftell(out) > 0 ? ", " : "", f->axes[i] + strlen("options."), value);
    }
    if (fclose(out) || !label) return out_of_memory(err);
    value_of(r, "seed", value, sizeof value);
    *cell = (struct cell){.result = r, .label = label, .seed = strdup(drawn ? value : "")};
    return cell->seed ? 0 : out_of_memory(err);
}

static int by_place(const void *pa, const void *pb)
{
    const struct cell *a = pa, *b = pb;
    int order = strcmp(a->label, b->label);
    return order ? order : strcmp(a->seed, b->seed);
}

static int make_cells(const struct files *f, struct side *side, struct err *err)
{
    side->cells = calloc(side->in.count, sizeof *side->cells);
    if (!side->cells) return out_of_memory(err);
    for (size_t i = 0; i < side->in.count; i++) {
        if (make_cell(f, &side->cells[i], &side->in.results[i], err)) return -1;
    }
    return 0;
}

/* B's cells in an order that can be searched. */
static int sort_cells(struct side *side, struct err *err)
{
    qsort(side->cells, side->in.count, sizeof *side->cells, by_place);
    for (size_t i = 1; i < side->in.count; i++) {
        if (by_place(&side->cells[i - 1], &side->cells[i]) != 0) continue;
        return err_set(err, ERR_INPUT, "%s: two results have the same options%s%s", side->path,
                       side->cells[i].label[0] ? ": " : "", side->cells[i].label);
    }
    return 0;
}

/* --- pairs ------------------------------------------------------------------------------------ */

static int same_requests(const struct files *f, const struct cell *a, const struct cell *b, struct err *err)
{
    char of_a[VALUE_BYTES], of_b[VALUE_BYTES];
    value_of(a->result, "trace_checksum", of_a, sizeof of_a);
    value_of(b->result, "trace_checksum", of_b, sizeof of_b);
    if (strcmp(of_a, of_b) == 0) return 0;
    return err_set(err, ERR_INPUT, "%s and %s: found trace_checksum %s and %s%s%s, expected the same requests in both", f->sides[0].path,
                   f->sides[1].path, of_a, of_b, a->label[0] ? " at " : "", a->label);
}

static int add_pair(const struct files *f, struct compare_group *group, struct cell *a, struct err *err)
{
    struct cell *b = bsearch(a, f->sides[1].cells, f->sides[1].in.count, sizeof *a, by_place);
    if (!b) return 0;
    if (b->paired) return err_set(err, ERR_INPUT, "%s: two results have the same options", f->sides[0].path);
    if (same_requests(f, a, b, err)) return -1;
    a->paired = b->paired = true;
    group->pairs[group->count++] = (struct compare_pair){a->result, b->result};
    return 0;
}

/* All cells from `first` on with its label. */
static int make_group(struct files *f, size_t first, struct compare_group *group, bool *tried, struct err *err)
{
    struct side *side = &f->sides[0];
    group->count = 0;
    snprintf(group->label, sizeof group->label, "%s", side->cells[first].label);
    for (size_t i = first; i < side->in.count; i++) {
        if (tried[i] || strcmp(side->cells[i].label, side->cells[first].label) != 0) continue;
        tried[i] = true;
        if (add_pair(f, group, &side->cells[i], err)) return -1;
    }
    return 0;
}

static void tell_unpaired(const struct files *f)
{
    for (int s = 0; s < 2; s++) {
        size_t alone = 0;
        for (size_t i = 0; i < f->sides[s].in.count; i++) alone += !f->sides[s].cells[i].paired;
        if (alone) fprintf(stderr, "pagesim: %s: %zu of %zu results have no partner\n", f->sides[s].path, alone, f->sides[s].in.count);
    }
}

static int show(struct files *f, struct compare_head *head, bool json, struct err *err)
{
    size_t count = f->sides[0].in.count, groups = 0;
    struct compare_group group = {.pairs = calloc(count, sizeof *group.pairs)};
    bool *tried = calloc(count, sizeof *tried);
    int status = group.pairs && tried ? 0 : out_of_memory(err);
    for (size_t i = 0; status == 0 && i < count; i++) {
        if (tried[i]) continue;
        status = make_group(f, i, &group, tried, err);
        if (status || group.count == 0) continue;
        head->drawn = is_drawn(group.pairs[0].a);
        if (groups++ > 0 && !json) fputc('\n', stdout);
        status = json ? compare_print_json(head, &group, stdout, err) : compare_print_table(head, &group, stdout, err);
    }
    if (status == 0 && groups == 0)
        status = err_set(err, ERR_INPUT, "%s and %s: no two results belong together, expected equal options where they vary within a file",
                         f->sides[0].path, f->sides[1].path);
    if (status == 0) tell_unpaired(f);
    free(tried);
    free(group.pairs);
    return status;
}

static int read_sides(struct files *f, struct err *err)
{
    for (int s = 0; s < 2; s++) {
        if (page_input_read(&f->sides[s].in, f->sides[s].path, err)) return -1;
    }
    if (find_axes(f, err) || make_cells(f, &f->sides[0], err) || make_cells(f, &f->sides[1], err)) return -1;
    return sort_cells(&f->sides[1], err);
}

static void release(struct files *f)
{
    for (int s = 0; s < 2; s++) {
        struct side *side = &f->sides[s];
        for (size_t i = 0; side->cells && i < side->in.count; i++) {
            free(side->cells[i].label);
            free(side->cells[i].seed);
        }
        free(side->cells);
        page_input_release(&side->in);
    }
}

int compare_files(const struct optset *set, const char *const paths[2], struct compare_head *head, struct err *err)
{
    struct files f = {.sides = {{.path = paths[0]}, {.path = paths[1]}}};
    struct options o;
    if (options_resolve(set, &o, err)) return -1;
    head->confidence = o.confidence;
    head->keys = &o.compare_keys;
    int status = read_sides(&f, err);
    if (status == 0) status = show(&f, head, o.json, err);
    release(&f);
    return status;
}
