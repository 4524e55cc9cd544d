#include "sim/optset.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/optset_internal.h"
#include "sim/serving_command.h"

/* --- life ------------------------------------------------------------------------------------ */

struct optset *optset_create(uint32_t command, bool many)
{
    struct optset *set = calloc(1, sizeof *set);
    if (!set) return NULL;
    set->command = command;
    set->many = many;
    set->slots = calloc(option_count(), sizeof *set->slots);
    if (!set->slots) {
        free(set);
        return NULL;
    }
    return set;
}

static void slot_clear(struct slot *slot)
{
    for (size_t i = 0; i < slot->count; i++) free(slot->items[i]);
    free(slot->items);
    free(slot->text);
    *slot = (struct slot){0};
}

void optset_destroy(struct optset *set)
{
    if (!set) return;
    for (size_t i = 0; i < option_count(); i++) slot_clear(&set->slots[i]);
    free(set->slots);
    free(set->file);
    free(set);
}

/* --- one value ------------------------------------------------------------------------------- */

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_FAILED, "out of memory");
}

/* text becomes all items, joined by commas. */
static int slot_join(struct slot *slot, struct err *err)
{
    size_t bytes = 1;
    for (size_t i = 0; i < slot->count; i++) bytes += strlen(slot->items[i]) + 1;
    char *text = malloc(bytes), *end = text;
    if (!text) return out_of_memory(err);
    *end = '\0';
    for (size_t i = 0; i < slot->count; i++) {
        if (i) *end++ = ',';
        end = stpcpy(end, slot->items[i]);
    }
    free(slot->text);
    slot->text = text;
    return 0;
}

#define VALUES_MAX 1000 /* of one option */

static int slot_append(struct slot *slot, const char *text, size_t bytes, struct err *err)
{
    if (slot->count == VALUES_MAX)
        return err_set(err, ERR_USAGE, "more than %d values", VALUES_MAX);
    char **items = realloc(slot->items, (slot->count + 1) * sizeof *items);
    if (!items) return out_of_memory(err);
    slot->items = items;
    items[slot->count] = strndup(text, bytes);
    if (!items[slot->count]) return out_of_memory(err);
    slot->count++;
    return 0;
}

/* Whether commas in this text separate values. */
static bool splits(const struct optset *set, const struct option_spec *spec, const char *text)
{
    if (spec->kind == OPT_LIST) return spec->max == 0;
    if (!set->many || spec->section >= OPT_CHECKS) return false;
    switch (spec->kind) {
    case OPT_FLAG:
    case OPT_PATH: return false;
    case OPT_TRACE_NAME: return strncmp(text, "gen:", 4) != 0; /* its settings stand between commas */
    default: return true;
    }
}

/* Results echo every value in full. */
static bool too_long_to_echo(const char *text)
{
    return strlen(text) >= OPTSET_ECHO_BYTES;
}

static int too_long(struct err *err)
{
    return err_set(err, ERR_USAGE, "longer than %d bytes", OPTSET_ECHO_BYTES - 1);
}

static int item_check(const struct optset *set, const struct option_spec *spec, const char *item,
                      struct err *err)
{
    struct err inner = {0};
    union option_field field;
    if (too_long_to_echo(item)) return too_long(err);
    if (option_parse(spec, item, &field, &inner) == 0) return 0;
    bool list = !set->many && (spec->commands & FOR_SWEEP) && strchr(item, ',');
    return err_set(err, inner.kind, "%s%s", inner.text, list ? "; lists are for 'pagesim sweep'" : "");
}

/* Two equal values would make cells that differ in nothing. */
static int slot_check_distinct(const struct option_spec *spec, const struct slot *slot, struct err *err)
{
    char a[OPTSET_ECHO_BYTES], b[OPTSET_ECHO_BYTES];
    if (spec->kind == OPT_LIST) return 0;
    for (size_t i = 1; i < slot->count; i++) {
        if (!option_canonical(spec, slot->items[i], a, sizeof a)) continue;
        for (size_t j = 0; j < i; j++)
            if (option_canonical(spec, slot->items[j], b, sizeof b) && strcmp(a, b) == 0)
                return err_set(err, ERR_USAGE, "'%.100s' stands twice in the list", slot->items[i]);
    }
    return 0;
}

static int slot_add(const struct optset *set, const struct option_spec *spec, struct slot *slot,
                    const char *text, bool whole, struct err *err)
{
    bool split = !whole && splits(set, spec, text);
    for (const char *item = text; item;) {
        size_t bytes = split ? strcspn(item, ",") : strlen(item);
        if (slot_append(slot, item, bytes, err) != 0) return -1;
        if (item_check(set, spec, slot->items[slot->count - 1], err) != 0) return -1;
        item = item[bytes] ? item + bytes + 1 : NULL;
    }
    if (slot_check_distinct(spec, slot, err) != 0 || slot_join(slot, err) != 0) return -1;
    if (!set->many && too_long_to_echo(slot->text)) return too_long(err);
    return 0;
}

int optset_add(struct optset *set, const struct option_spec *spec, const char *text, bool whole,
               unsigned line, struct err *err)
{
    struct slot *slot = &set->slots[option_index(spec)];
    if (slot->count > 0 && spec->kind != OPT_LIST && !(whole && set->many)) {
        if (line) return err_set(err, ERR_USAGE, "given before at line %u", slot->line);
        return err_set(err, ERR_USAGE, "given twice");
    }
    if (slot_add(set, spec, slot, text, whole, err) != 0) {
        slot_clear(slot);
        return -1;
    }
    slot->line = line;
    return 0;
}

size_t option_index(const struct option_spec *spec)
{
    return (size_t)(spec - option_at(0));
}

int optset_put(struct optset *set, const char *name, const char *text, struct err *err)
{
    const struct option_spec *spec = option_find(set->command, name);
    if (!spec) return err_set(err, ERR_USAGE, "--%.60s: unknown option", name);
    if (optset_add(set, spec, text, false, 0, err) == 0) return 0;
    err_prefix(err, "--%s", spec->name);
    return -1;
}

int optset_put_trace(struct optset *set, const char *name, struct err *err)
{
    const struct option_spec *spec = option_find(set->command, "trace");
    assert(spec);
    if (optset_given(set, "trace") && !set->many)
        return err_set(err, ERR_USAGE, "one trace expected, found two: '%.100s' and '%.100s'",
                       optset_text(set, "trace"), name);
    if (optset_add(set, spec, name, true, 0, err) == 0) return 0;
    err_prefix(err, "trace");
    return -1;
}

/* --- command line ------------------------------------------------------------------------------ */

/* The name of an option without dashes, '_' spelled '-' as vLLM allows. */
static bool name_copy(char *out, size_t out_bytes, const char *text, size_t bytes)
{
    if (bytes >= out_bytes) return false;
    for (size_t i = 0; i < bytes; i++) out[i] = text[i] == '_' ? '-' : text[i];
    out[bytes] = '\0';
    return true;
}

static int unknown(const struct optset *set, const char *name, struct err *err)
{
    const char *nearest = option_nearest(set->command, name);
    return err_set(err, ERR_USAGE, "--%.60s: unknown option%s%s%s", name,
                   nearest ? ", did you mean --" : "", nearest ? nearest : "", nearest ? "?" : "");
}

static const struct option_spec *find_negated(const struct optset *set, const char *name)
{
    if (strncmp(name, "no-", 3) != 0) return NULL;
    const struct option_spec *spec = option_find(set->command, name + 3);
    return spec && spec->kind == OPT_BOOL ? spec : NULL;
}

/* Reads argv[*i], an option, and its value, which may be the next argument. */
static int option_argument(struct optset *set, int argc, char **argv, int *i, struct err *err)
{
    char name[64];
    const char *text = argv[*i] + 2;
    size_t bytes = strcspn(text, "=");
    const char *value = text[bytes] ? text + bytes + 1 : NULL;
    if (!name_copy(name, sizeof name, text, bytes)) return unknown(set, text, err);
    const struct option_spec *spec = option_find(set->command, name);
    const struct option_spec *negated = spec ? NULL : find_negated(set, name);
    if (!spec && !negated) return unknown(set, name, err);
    if (negated || spec->kind == OPT_FLAG) {
        if (value) return err_set(err, ERR_USAGE, "--%s: takes no value, found '%.100s'", name, value);
        value = negated ? "no" : "yes";
    } else if (!value && spec->kind == OPT_BOOL) {
        value = "yes";
    } else if (!value) {
        if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
            return err_set(err, ERR_USAGE, "--%s: needs a value (%s)", name, spec->unit);
        value = argv[++*i];
    }
    if (optset_add(set, negated ? negated : spec, value, false, 0, err) == 0) return 0;
    err_prefix(err, "--%s", name);
    return -1;
}

int optset_args(struct optset *set, int argc, char **argv, int *rest, struct err *err)
{
    int kept = 0;
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        const char *text = argv[i];
        if (ended || text[0] != '-' || text[1] == '\0') {
            argv[kept++] = argv[i];
        } else if (strcmp(text, "--") == 0) {
            ended = true;
        } else if (text[1] != '-') {
            return err_set(err, ERR_USAGE, "%.60s: unknown option, options begin with two dashes",
                           text);
        } else if (option_argument(set, argc, argv, &i, err) != 0) {
            return -1;
        }
    }
    *rest = kept;
    return 0;
}

/* --- what concerns several options ----------------------------------------------------------------- */

static const char *const POOL_OPTIONS[] = {"kv-cache-memory-bytes", "pool-tokens",
                                           "num-gpu-blocks-override"};

static int pool_check(const struct optset *set, struct err *err)
{
    const char *first = NULL;
    for (size_t i = 0; i < sizeof POOL_OPTIONS / sizeof POOL_OPTIONS[0]; i++) {
        if (!optset_given(set, POOL_OPTIONS[i])) continue;
        if (first)
            return err_set(err, ERR_USAGE, "--%s and --%s both size the pool: give one", first,
                           POOL_OPTIONS[i]);
        first = POOL_OPTIONS[i];
    }
    return 0;
}

static int policies_check(const struct optset *set, struct err *err)
{
    const struct option_spec *spec = option_find(set->command, "policy");
    if (!spec) return 0;
    struct opt_list names = optset_values(set, spec);
    for (size_t i = 0; i < names.count; i++) {
        if (kv_registry_find(names.items[i])) continue;
        char known[512] = "";
        for (size_t p = 0, n = 0; p < kv_registry_count() && n < sizeof known; p++)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", p ? ", " : "",
                                  kv_registry_at(p)->name);
        err_set(err, ERR_USAGE, "found '%.100s', expected one of %s", names.items[i], known);
        optset_blame(set, spec, err);
        return -1;
    }
    return 0;
}

/* Options of policies and orders that are not there. */
static int owners_check(const struct optset *set, struct err *err)
{
    for (size_t i = 0; i < option_count(); i++) {
        const struct option_spec *spec = option_at(i);
        if (set->slots[i].count == 0 || optset_applies(set, spec)) continue;
        const char *order = option_find(set->command, "evict") ? optset_text(set, "evict") : NULL;
        bool has_orders = optset_applies(set, option_find(set->command, "evict"));
        if (spec->of_order && order && has_orders)
            err_set(err, ERR_USAGE, "eviction order %s has no such option", order);
        else
            err_set(err, ERR_USAGE, "policy %s has no such option", optset_text(set, "policy"));
        optset_blame(set, spec, err);
        return -1;
    }
    return 0;
}

#define CELLS_MAX ((uint64_t)1000000)

int optset_finish(struct optset *set, struct err *err)
{
    /* The command line wins over a pasted command, and that over the file. */
    bool pasted = optset_given(set, "command");
    if (pasted && serving_command_read(set, NULL, err) != 0) return -1;
    /* `device` has an option of that name for something else: a recorded case. */
    const struct option_spec *spec = option_find(set->command, "config");
    const char *config = spec && spec->section == OPT_OUTPUT ? optset_text(set, "config") : NULL;
    if (config && optset_config(set, config, err) != 0) return -1;
    if (!pasted && optset_given(set, "command") && serving_command_read(set, NULL, err) != 0) return -1;
    if (policies_check(set, err) != 0 || owners_check(set, err) != 0 || pool_check(set, err) != 0) return -1;
    uint64_t cells = optset_cells(set);
    if (cells > CELLS_MAX)
        return err_set(err, ERR_USAGE, "the lists make %" PRIu64 " cells, more than %" PRIu64, cells,
                       CELLS_MAX);
    return 0;
}

/* --- looking ------------------------------------------------------------------------------------- */

uint32_t optset_command(const struct optset *set)
{
    return set->command;
}

bool optset_given(const struct optset *set, const char *name)
{
    const struct option_spec *spec = option_find(set->command, name);
    return spec && set->slots[option_index(spec)].count > 0;
}

static bool any_given(const struct optset *set, const char *const *names)
{
    for (; *names; names++)
        if (optset_given(set, *names)) return true;
    return false;
}

/* Defaults of the pool and of a token's bytes are in force only when nothing else says them. */
static bool default_holds(const struct optset *set, const struct option_spec *spec)
{
    static const char *const POOL[] = {"pool-tokens", "num-gpu-blocks-override", "gpu", "gpu-memory", NULL};
    static const char *const TOKEN[] = {"model", "num-layers", "layer-groups", NULL};
    if (strcmp(spec->name, "kv-cache-memory-bytes") == 0) return !any_given(set, POOL);
    if (strcmp(spec->name, "kv-bytes-per-token") == 0) return !any_given(set, TOKEN);
    if (strcmp(spec->name, "sliding-window") == 0) return !any_given(set, TOKEN); /* the model's */
    return true;
}

static const char *text_in_force(const struct optset *set, const struct option_spec *spec)
{
    const struct slot *slot = &set->slots[option_index(spec)];
    if (slot->count > 0) return slot->text;
    return default_holds(set, spec) ? spec->default_text : NULL;
}

const char *optset_text(const struct optset *set, const char *name)
{
    const struct option_spec *spec = option_find(set->command, name);
    return spec ? text_in_force(set, spec) : NULL;
}

struct opt_list optset_values(const struct optset *set, const struct option_spec *spec)
{
    const struct slot *slot = &set->slots[option_index(spec)];
    if (slot->count > 0) return (struct opt_list){slot->count, (const char *const *)slot->items};
    if (!spec->default_text || !default_holds(set, spec)) return (struct opt_list){0, NULL};
    return (struct opt_list){1, &option_at(option_index(spec))->default_text};
}

void optset_blame(const struct optset *set, const struct option_spec *spec, struct err *err)
{
    const struct slot *slot = &set->slots[option_index(spec)];
    if (slot->line)
        err_prefix(err, "%.300s:%u: %s", set->file, slot->line, spec->name);
    else
        err_prefix(err, "--%s", spec->name);
}

static const struct opt_list NO_NAME = {1, (const char *const[]){NULL}};

/* The values in force of an option, a NULL one where the command does not have it. */
static struct opt_list names_of(const struct optset *set, const char *name)
{
    const struct option_spec *spec = option_find(set->command, name);
    struct opt_list names = spec ? optset_values(set, spec) : NO_NAME;
    return names.count > 0 ? names : NO_NAME;
}

bool optset_applies(const struct optset *set, const struct option_spec *spec)
{
    if (!spec->policy_option) return true;
    struct opt_list policies = names_of(set, "policy"), orders = names_of(set, "evict");
    for (size_t i = 0; i < policies.count; i++) {
        const struct kv_policy_ops *ops = policies.items[i] ? kv_registry_find(policies.items[i]) : NULL;
        for (size_t k = 0; k < orders.count; k++)
            if (option_applies(spec, ops, orders.items[k])) return true;
    }
    return false;
}

bool optset_echo(const struct optset *set, size_t *i, const struct option_spec **spec, char *text,
                 size_t text_bytes)
{
    for (; *i < option_count(); ++*i) {
        *spec = option_at(*i);
        if (!((*spec)->commands & set->command) || (*spec)->section >= OPT_CHECKS) continue;
        const char *value = text_in_force(set, *spec);
        if (!value || !optset_applies(set, *spec)) continue;
        if (!option_canonical(*spec, value, text, text_bytes))
            snprintf(text, text_bytes, "%s", value); /* a list stands as it is */
        ++*i;
        return true;
    }
    return false;
}

/* --- cells ------------------------------------------------------------------------------------- */

static bool is_outer_axis(const struct option_spec *spec)
{
    return strcmp(spec->name, "trace") == 0 || strcmp(spec->name, "policy") == 0 ||
           (spec->kind != OPT_LIST && strcmp(spec->name, "evict") == 0);
}

/* Values that option i contributes to the cells of one policy and eviction order, apart from those. */
static size_t axis_length(const struct optset *set, size_t i, const struct kv_policy_ops *ops, const char *order)
{
    const struct option_spec *spec = option_at(i);
    bool axis = set->slots[i].count > 1 && spec->kind != OPT_LIST && !is_outer_axis(spec);
    return axis && option_applies(spec, ops, order) ? set->slots[i].count : 1;
}

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t saturating_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t cells_of_order(const struct optset *set, const struct kv_policy_ops *ops, const char *order)
{
    uint64_t cells = 1;
    for (size_t i = 0; i < option_count(); i++)
        cells = saturating_product(cells, axis_length(set, i, ops, order));
    return cells;
}

/* The eviction orders of a policy's cells; a NULL one for policies that have none. */
static struct opt_list orders_of(const struct optset *set, const struct kv_policy_ops *ops)
{
    const struct option_spec *spec = option_find(set->command, "evict");
    bool chooses = spec && spec->kind != OPT_LIST && option_applies(spec, ops, NULL);
    return chooses ? names_of(set, "evict") : NO_NAME;
}

static uint64_t cells_of_policy(const struct optset *set, const struct kv_policy_ops *ops)
{
    struct opt_list orders = orders_of(set, ops);
    uint64_t cells = 0;
    for (size_t i = 0; i < orders.count; i++)
        cells = saturating_sum(cells, cells_of_order(set, ops, orders.items[i]));
    return cells;
}

/* The values of an outer axis; commands without that option have one cell for it. */
static struct opt_list outer_values(const struct optset *set, const char *name)
{
    static const char *const nothing[] = {""};
    const struct option_spec *spec = option_find(set->command, name);
    struct opt_list values = {0, NULL};
    if (spec) values = optset_values(set, spec);
    return values.count > 0 ? values : (struct opt_list){1, nothing};
}

static uint64_t cells_of_trace(const struct optset *set)
{
    struct opt_list policies = outer_values(set, "policy");
    uint64_t cells = 0;
    for (size_t p = 0; p < policies.count; p++)
        cells = saturating_sum(cells, cells_of_policy(set, kv_registry_find(policies.items[p])));
    return cells;
}

uint64_t optset_cells(const struct optset *set)
{
    return saturating_product(outer_values(set, "trace").count, cells_of_trace(set));
}

/* Copies item `which` of slot i, or all items of a list option. */
static int cell_copy(struct optset *cell, const struct optset *set, size_t i, size_t which)
{
    const struct slot *from = &set->slots[i];
    struct slot *to = &cell->slots[i];
    bool all = option_at(i)->kind == OPT_LIST;
    for (size_t n = all ? 0 : which; n < (all ? from->count : which + 1); n++)
        if (slot_append(to, from->items[n], strlen(from->items[n]), NULL) != 0) return -1;
    to->line = from->line;
    return slot_join(to, NULL);
}

/* What one cell has of the outer axes. */
struct outer {
    size_t trace, policy, order;
    const struct kv_policy_ops *ops;
    const char *order_name;
};

static int cell_fill(struct optset *cell, const struct optset *set, const struct outer *outer, uint64_t k)
{
    if (set->file && !(cell->file = strdup(set->file))) return -1;
    for (size_t i = option_count(); i-- > 0;) {
        const struct option_spec *spec = option_at(i);
        size_t length = axis_length(set, i, outer->ops, outer->order_name);
        size_t which = (size_t)(k % length);
        k /= length;
        if (set->slots[i].count == 0 || !option_applies(spec, outer->ops, outer->order_name)) continue;
        if (strcmp(spec->name, "trace") == 0) which = outer->trace;
        if (strcmp(spec->name, "policy") == 0) which = outer->policy;
        if (strcmp(spec->name, "evict") == 0) which = outer->order;
        if (cell_copy(cell, set, i, which) != 0) return -1;
    }
    return 0;
}

struct optset *optset_cell(const struct optset *set, uint64_t k)
{
    assert(k < optset_cells(set));
    struct optset *cell = optset_create(set->command, false);
    if (!cell) return NULL;
    uint64_t per_trace = cells_of_trace(set);
    struct outer outer = {.trace = (size_t)(k / per_trace)};
    struct opt_list policies = outer_values(set, "policy");
    k %= per_trace;
    outer.ops = kv_registry_find(policies.items[0]);
    for (uint64_t cells; k >= (cells = cells_of_policy(set, outer.ops)); k -= cells)
        outer.ops = kv_registry_find(policies.items[++outer.policy]);
    struct opt_list orders = orders_of(set, outer.ops);
    outer.order_name = orders.items[0];
    for (uint64_t cells; k >= (cells = cells_of_order(set, outer.ops, outer.order_name)); k -= cells)
        outer.order_name = orders.items[++outer.order];
    if (cell_fill(cell, set, &outer, k) == 0) return cell;
    optset_destroy(cell);
    return NULL;
}
