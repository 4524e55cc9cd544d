#include "sim/plot_rows.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/kv_policy.h"
#include "sim/options.h"

#define OPTION_PREFIX "options."
#define OPTION_PREFIX_BYTES (sizeof OPTION_PREFIX - 1)
#define BLOCK_SIZE_PREFERRED 16

/* Options in which rows differ. Names point into the rows. */
struct varying {
    const char **keys;
    size_t count, capacity;
};

const char *plot_text(const struct result_entry *entry, char *buffer, size_t bytes)
{
    if (!entry) return "";
    switch (entry->kind) {
    case RESULT_TEXT: return entry->text;
    case RESULT_U64: snprintf(buffer, bytes, "%llu", (unsigned long long)entry->u64); return buffer;
    case RESULT_F64: result_format_f64(entry->f64, buffer, bytes); return buffer;
    case RESULT_BOOL: return entry->yes ? "true" : "false";
    case RESULT_NULL: break;
    }
    return "";
}

static bool same_text(const struct result *a, const struct result *b, const char *key)
{
    char text_a[PLOT_NUMBER_BYTES], text_b[PLOT_NUMBER_BYTES];
    return strcmp(plot_text(result_find(a, key), text_a, sizeof text_a),
                  plot_text(result_find(b, key), text_b, sizeof text_b)) == 0;
}

static const char *policy_of(const struct result *result)
{
    const struct result_entry *entry = result_find(result, "policy");
    return entry && entry->kind == RESULT_TEXT ? entry->text : "unknown";
}

static bool is_policy_option(const char *key)
{
    const struct option_spec *spec = option_find(FOR_SWEEP, key + OPTION_PREFIX_BYTES);
    return spec && spec->policy_option;
}

static bool varying_has(const struct varying *v, const char *key)
{
    for (size_t i = 0; i < v->count; i++) {
        if (strcmp(v->keys[i], key) == 0) return true;
    }
    return false;
}

static bool varying_add(struct varying *v, const char *key)
{
    if (varying_has(v, key)) return true;
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? v->capacity * 2 : 16;
        const char **grown = realloc(v->keys, capacity * sizeof *grown);
        if (!grown) return false;
        v->keys = grown;
        v->capacity = capacity;
    }
    v->keys[v->count++] = key;
    return true;
}

/* Whether the option, as a row has it, differs from the row that it is to be compared with: the first of all, or for
 * a policy's own option the first of the same policy, since the others do not have it. */
static bool differs(const struct result *results, size_t row, const char *key)
{
    size_t first = 0;
    if (is_policy_option(key)) {
        while (strcmp(policy_of(&results[first]), policy_of(&results[row])) != 0) first++;
    }
    return !same_text(&results[first], &results[row], key);
}

/* An option that is only in the first row is found from the others' side through the second loop. */
static bool find_varying(struct varying *v, const struct result *results, size_t count)
{
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < results[r].count; i++) {
            const char *key = results[r].entries[i].key;
            if (strncmp(key, OPTION_PREFIX, OPTION_PREFIX_BYTES) != 0) continue;
            const char *name = key + OPTION_PREFIX_BYTES;
            if (strcmp(name, "policy") == 0 || strcmp(name, "block-size") == 0) continue;
            if (differs(results, r, key) && !varying_add(v, key)) return false;
        }
    }
    for (size_t i = 0; count > 0 && i < results[0].count; i++) {
        const char *key = results[0].entries[i].key;
        if (strncmp(key, OPTION_PREFIX, OPTION_PREFIX_BYTES) != 0 || is_policy_option(key)) continue;
        for (size_t r = 1; r < count; r++) {
            if (!result_find(&results[r], key) && !varying_add(v, key)) return false;
        }
    }
    return true;
}

/* "trace=a.csv,seed=2". NULL: out of memory. */
static char *group_label(const struct result *result, const struct varying *v)
{
    char *text = NULL, number[PLOT_NUMBER_BYTES];
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    const char *comma = "";
    for (size_t i = 0; i < v->count; i++) {
        if (is_policy_option(v->keys[i])) continue;
        const char *value = plot_text(result_find(result, v->keys[i]), number, sizeof number);
        fprintf(out, "%s%s=%s", comma, v->keys[i] + OPTION_PREFIX_BYTES, *value ? value : "unset");
        comma = ",";
    }
    return fclose(out) == 0 ? text : (free(text), NULL);
}

/* "static", or "static(oracle+buddy)" where both options vary. Words for gnuplot: no blank, no comma. */
static char *series_label(const struct result *result, const struct varying *v)
{
    char *text = NULL, number[PLOT_NUMBER_BYTES];
    size_t bytes, shown = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    fputs(policy_of(result), out);
    for (size_t i = 0; i < v->count; i++) {
        const struct result_entry *entry = result_find(result, v->keys[i]);
        if (!is_policy_option(v->keys[i]) || !entry) continue;
        fprintf(out, "%s%s", shown++ == 0 ? "(" : "+", plot_text(entry, number, sizeof number));
    }
    if (shown > 0) fputc(')', out);
    if (fclose(out) != 0) return free(text), NULL;
    for (char *p = text; *p; p++) {
        if (strchr(" \t\r\n,\"", *p)) *p = '_';
    }
    return text;
}

static uint64_t block_size_of(const struct result *result)
{
    const struct result_entry *entry = result_find(result, OPTION_PREFIX "block-size");
    if (!entry) entry = result_find(result, "block_size_tokens");
    return entry && entry->kind == RESULT_U64 ? entry->u64 : 0;
}

static bool ignores_block_size(const struct result *result)
{
    const struct kv_policy_ops *ops = kv_registry_find(policy_of(result));
    return ops && (ops->flags & (KV_CONTIGUOUS | KV_TOKEN_UNITS));
}

static bool label(struct plot_rows *sorted, const struct varying *v)
{
    for (size_t i = 0; i < sorted->count; i++) {
        struct plot_row *row = &sorted->rows[i];
        row->block_size = block_size_of(row->result);
        row->group = group_label(row->result, v);
        row->series = series_label(row->result, v);
        if (!row->group || !row->series) return false;
        row->group_rank = row->series_rank = i;
        for (size_t k = 0; k < i; k++) {
            const struct plot_row *before = &sorted->rows[k];
            if (before->group_rank == k && strcmp(before->group, row->group) == 0) row->group_rank = k;
            if (before->series_rank == k && strcmp(before->series, row->series) == 0)
                row->series_rank = k;
        }
    }
    return true;
}

static int compare_rows(const void *a_, const void *b_)
{
    const struct plot_row *a = a_, *b = b_;
    if (a->group_rank != b->group_rank) return a->group_rank < b->group_rank ? -1 : 1;
    if (a->series_rank != b->series_rank) return a->series_rank < b->series_rank ? -1 : 1;
    if (a->block_size != b->block_size) return a->block_size < b->block_size ? -1 : 1;
    return a->result < b->result ? -1 : a->result > b->result;
}

size_t plot_rows_group_end(const struct plot_rows *sorted, size_t begin)
{
    size_t end = begin;
    while (end < sorted->count && sorted->rows[end].group_rank == sorted->rows[begin].group_rank) end++;
    return end;
}

/* A pool given in blocks changes with the block size, and even a contiguous policy's figures with it. */
static bool agree(const struct result *a, const struct result *b)
{
    static const char *const keys[] = {"pool_bytes", "steps", "internal_fragmentation", "reservation_waste",
                                       "external_fragmentation", "refusals.episodes"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (!same_text(a, b, keys[i])) return false;
    }
    return true;
}

/* Bars: of a flat series one, of the others the smallest block size, 16 and the largest. */
static void choose_bars(struct plot_rows *sorted, size_t begin, size_t end)
{
    uint64_t smallest = UINT64_MAX, largest = 0;
    size_t bars = 0;
    for (size_t i = begin; i < end; i++) {
        struct plot_row *row = &sorted->rows[i];
        if (row->flat) continue;
        if (row->block_size < smallest) smallest = row->block_size;
        if (row->block_size > largest) largest = row->block_size;
    }
    for (size_t i = begin; i < end; i++) {
        struct plot_row *row = &sorted->rows[i];
        bool first = i == begin || sorted->rows[i - 1].series_rank != row->series_rank;
        bool chosen = row->flat ? first
                                : row->block_size == smallest || row->block_size == largest ||
                                      row->block_size == BLOCK_SIZE_PREFERRED;
        row->bar = chosen ? ++bars : 0;
    }
}

static void find_flat(struct plot_rows *sorted, size_t begin, size_t end)
{
    for (size_t i = begin, next; i < end; i = next) {
        bool flat = ignores_block_size(sorted->rows[i].result);
        for (next = i + 1; next < end && sorted->rows[next].series_rank == sorted->rows[i].series_rank; next++)
            flat = flat && agree(sorted->rows[i].result, sorted->rows[next].result);
        for (size_t k = i; k < next; k++) sorted->rows[k].flat = flat;
    }
}

int plot_rows_sort(struct plot_rows *sorted, const struct result *results, size_t count,
                   struct err *err)
{
    struct varying v = {0};
    *sorted = (struct plot_rows){.rows = calloc(count ? count : 1, sizeof *sorted->rows)};
    bool enough = sorted->rows && find_varying(&v, results, count);
    if (enough) {
        sorted->count = count;
        for (size_t i = 0; i < count; i++) sorted->rows[i].result = &results[i];
        enough = label(sorted, &v);
    }
    free(v.keys);
    if (!enough) return err_set(err, ERR_FAILED, "out of memory");
    qsort(sorted->rows, count, sizeof *sorted->rows, compare_rows);
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = plot_rows_group_end(sorted, begin);
        find_flat(sorted, begin, end);
        choose_bars(sorted, begin, end);
    }
    return 0;
}

void plot_rows_release(struct plot_rows *sorted)
{
    for (size_t i = 0; i < sorted->count; i++) {
        free(sorted->rows[i].group);
        free(sorted->rows[i].series);
    }
    free(sorted->rows);
    *sorted = (struct plot_rows){0};
}
