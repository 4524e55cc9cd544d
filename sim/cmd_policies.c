/* pagesim policies: what is built in, from the policies' own tables. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/eviction.h"
#include "sim/command.h"
#include "sim/engine_core.h"

static const struct {
    uint32_t flag;
    const char *name;
    const char *meaning;
} FLAGS[] = {
    {KV_CACHES, "caches", "keeps content for reuse by later requests"},
    {KV_CONTIGUOUS, "contiguous", "a sequence is one region of the address space"},
    {KV_RESERVES, "reserves", "takes everything at admission, growth asks for nothing more"},
    {KV_CLAIRVOYANT, "clairvoyant", "looks at true lengths that no server knows"},
    {KV_TOKEN_UNITS, "token-units", "a block is one token, whatever --block-size says"},
};
#define FLAG_COUNT (sizeof FLAGS / sizeof FLAGS[0])

#define INDENT 4
#define HELP_COLUMN 22

/* "0 to 4096", "at least 1" or "max|pow2|...". */
static void range_text(const struct kv_option *option, char *out, size_t out_bytes)
{
    if (option->choices)
        snprintf(out, out_bytes, "%s", option->choices);
    else if (option->count_max == UINT64_MAX)
        snprintf(out, out_bytes, "at least %" PRIu64, option->count_min);
    else
        snprintf(out, out_bytes, "%" PRIu64 " to %" PRIu64, option->count_min, option->count_max);
}

static void print_options(const struct kv_option *const *options)
{
    char range[256], text[1024];
    for (size_t i = 0; options && options[i]; i++) {
        const struct kv_option *option = options[i];
        range_text(option, range, sizeof range);
        snprintf(text, sizeof text, "%s: %s [%s]", option->help, range, option->default_text);
        int column = printf("%*s--%-*s ", INDENT, "", HELP_COLUMN - INDENT - 3, option->name);
        command_print_wrapped(text, column, HELP_COLUMN);
    }
}

/* An indented line that may need several. */
static void print_line(const char *label, const char *text)
{
    int column = printf("%*s%s", INDENT, "", label);
    command_print_wrapped(text, column, 2 * INDENT);
}

static void print_eviction_flags(const struct kv_eviction_ops *order)
{
    if (order->flags & KV_EVICTION_ORPHANS)
        printf("    may evict a block before what continues it\n");
    if (order->flags & KV_EVICTION_CLAIRVOYANT)
        printf("    clairvoyant: in 'pagesim cache' a bound, in 'pagesim run' a heuristic; needs a trace that can be read twice\n");
    if (order->flags & KV_EVICTION_STRUCTURE)
        printf("    knows prompts or kinds of requests: not for a host tier\n");
}

/* Orders of eviction: of `cache`, and of policies that have --evict. */
static void print_eviction_orders(void)
{
    printf("\n\nEviction orders (--evict NAME in 'pagesim cache' and with policies that cache)\n");
    for (size_t i = 0; i < kv_eviction_count(); i++) {
        const struct kv_eviction_ops *order = kv_eviction_at(i);
        printf("\n%s\n", order->name);
        print_line("", order->summary);
        print_line("source: ", order->source);
        print_eviction_flags(order);
        print_options(order->options);
    }
}

static void print_schedulers(void)
{
    printf("\n\nSchedulers (--scheduler NAME)\n");
    for (size_t i = 0; i < scheduler_count(); i++) {
        printf("\n%s\n", scheduler_at(i)->name);
        print_line("", scheduler_at(i)->summary);
        print_line("source: ", scheduler_at(i)->source);
    }
}

static void print_list(void)
{
    printf("Allocation policies (--policy NAME); 'pagesim policies NAME' explains one.\n");
    for (size_t p = 0; p < kv_registry_count(); p++) {
        const struct kv_policy_ops *ops = kv_registry_at(p);
        printf("\n%s\n", ops->name);
        print_line("", ops->summary);
        const char *separator = "    (";
        for (size_t i = 0; i < FLAG_COUNT; i++) {
            if (!(ops->flags & FLAGS[i].flag)) continue;
            printf("%s%s", separator, FLAGS[i].name);
            separator = ", ";
        }
        if (*separator == ',') printf(")\n");
        print_line("source: ", ops->source);
        print_options(ops->options);
    }
    print_eviction_orders();
    print_schedulers();
}

static void print_head(const char *name, const char *kind, const char *summary, const char *description, const char *source)
{
    printf("%s (%s)\n\n", name, kind);
    command_print_wrapped(summary, 0, 0);
    if (description) printf("\n");
    if (description) command_print_wrapped(description, 0, 0);
    printf("\nSource: ");
    command_print_wrapped(source, 8, 8);
}

static void policy_page(const struct kv_policy_ops *ops)
{
    print_head(ops->name, "allocation policy", ops->summary, ops->description, ops->source);
    printf("\n");
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (ops->flags & FLAGS[i].flag) printf("  %-13s%s\n", FLAGS[i].name, FLAGS[i].meaning);
    if (!(ops->flags & KV_CONTIGUOUS)) printf("  %-13s%s\n", "blocks", "its units fit anywhere");
    if (ops->trim) printf("  %-13s%s\n", "trims", "gives blocks before a sliding window back");
    if (kv_registry_is_added(ops)) printf("  %-13s%s\n", "plug-in", "every call is checked");
    if (ops->options && ops->options[0]) printf("\nOptions, defaults in brackets\n");
    print_options(ops->options);
    printf("\nTry: pagesim run --policy %s --trace preset:azure-conv\n", ops->name);
}

static void eviction_page(const struct kv_eviction_ops *order)
{
    print_head(order->name, "eviction order", order->summary, order->description, order->source);
    printf("\n");
    print_eviction_flags(order);
    if (order->flags & KV_EVICTION_STACK) printf("    a larger cache holds what a smaller one holds: curves from one pass\n");
    if (order->options && order->options[0]) printf("\nOptions, defaults in brackets\n");
    print_options(order->options);
    printf("\nTry: pagesim cache --trace preset:mooncake-conversation --capacity 20000 --evict %s\n", order->name);
}

static void scheduler_page(const struct scheduler *s)
{
    print_head(s->name, "scheduler", s->summary, s->description, s->source);
    printf("\nTry: pagesim run --scheduler %s --trace preset:azure-conv\n", s->name);
}

/* One name may be of several kinds. False when it is of none. */
static bool print_pages(const char *name)
{
    const struct kv_policy_ops *policy = kv_registry_find(name);
    const struct kv_eviction_ops *order = kv_eviction_find(name);
    const struct scheduler *scheduler = scheduler_find(name);
    if (policy) policy_page(policy);
    if (policy && (order || scheduler)) printf("\n\n");
    if (order) eviction_page(order);
    if (order && scheduler) printf("\n\n");
    if (scheduler) scheduler_page(scheduler);
    return policy || order || scheduler;
}

static json_t *flags_json(const struct kv_policy_ops *ops)
{
    json_t *flags = json_array();
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (ops->flags & FLAGS[i].flag) json_array_append_new(flags, json_string(FLAGS[i].name));
    return flags;
}

static json_t *option_json(const struct kv_option *option)
{
    json_t *object = json_pack("{s:s, s:s, s:s}", "name", option->name, "help", option->help,
                               "default", option->default_text);
    if (option->choices) {
        json_object_set_new(object, "choices", json_string(option->choices));
        return object;
    }
    /* A range without end has no maximum: JSON's integers are signed here. */
    json_object_set_new(object, "min", json_integer((json_int_t)option->count_min));
    json_object_set_new(object, "max", option->count_max > INT64_MAX
                                           ? json_null()
                                           : json_integer((json_int_t)option->count_max));
    return object;
}

static json_t *options_json(const struct kv_option *const *options)
{
    json_t *array = json_array();
    for (size_t i = 0; options && options[i]; i++) json_array_append_new(array, option_json(options[i]));
    return array;
}

static json_t *policy_json(const struct kv_policy_ops *ops)
{
    return json_pack("{s:s, s:s, s:s, s:s?, s:s, s:o, s:o}", "kind", "policy", "name", ops->name, "summary", ops->summary,
                     "description", ops->description, "source", ops->source, "flags", flags_json(ops), "options", options_json(ops->options));
}

static json_t *eviction_json(const struct kv_eviction_ops *order)
{
    json_t *flags = json_array();
    if (order->flags & KV_EVICTION_ORPHANS) json_array_append_new(flags, json_string("orphans"));
    if (order->flags & KV_EVICTION_STACK) json_array_append_new(flags, json_string("stack"));
    if (order->flags & KV_EVICTION_CLAIRVOYANT) json_array_append_new(flags, json_string("clairvoyant"));
    if (order->flags & KV_EVICTION_STRUCTURE) json_array_append_new(flags, json_string("structure"));
    return json_pack("{s:s, s:s, s:s, s:s?, s:s, s:o, s:o}", "kind", "eviction", "name", order->name, "summary", order->summary,
                     "description", order->description, "source", order->source, "flags", flags, "options",
                     options_json(order->options));
}

static json_t *scheduler_json(const struct scheduler *s)
{
    return json_pack("{s:s, s:s, s:s, s:s?, s:s}", "kind", "scheduler", "name", s->name, "summary", s->summary,
                     "description", s->description, "source", s->source);
}

static bool append(json_t *root, const char *name, const char *wanted, json_t *(*make)(const void *), const void *of)
{
    return (wanted && strcmp(name, wanted) != 0) || json_array_append_new(root, make(of)) == 0;
}

static json_t *make_policy(const void *of)
{
    return policy_json(of);
}

static json_t *make_eviction(const void *of)
{
    return eviction_json(of);
}

static json_t *make_scheduler(const void *of)
{
    return scheduler_json(of);
}

/* All, or those of one name. Jansson's calls take NULL for what failed before, so one check at the end sees a lack of memory. */
static int print_json(const char *wanted, struct err *err)
{
    json_t *root = json_array();
    bool whole = root != NULL;
    for (size_t i = 0; i < kv_registry_count(); i++)
        whole = append(root, kv_registry_at(i)->name, wanted, make_policy, kv_registry_at(i)) && whole;
    for (size_t i = 0; i < kv_eviction_count(); i++)
        whole = append(root, kv_eviction_at(i)->name, wanted, make_eviction, kv_eviction_at(i)) && whole;
    for (size_t i = 0; i < scheduler_count(); i++)
        whole = append(root, scheduler_at(i)->name, wanted, make_scheduler, scheduler_at(i)) && whole;
    size_t count = json_array_size(root);
    char *text = whole ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (!text) return err_set(err, ERR_FAILED, "out of memory");
    if (count > 0) printf("%s\n", text);
    free(text);
    return count > 0 ? COMMAND_DONE
                     : err_set(err, ERR_USAGE, "unknown policy '%.60s'; 'pagesim policies' lists them", wanted);
}

static int policies_run(const struct optset *set, int argc, char **argv, struct err *err)
{
    if (argc > 1) return err_set(err, ERR_USAGE, "found '%.60s', expected one policy", argv[1]);
    const char *wanted = argc == 1 ? argv[0] : NULL;
    if (optset_given(set, "json")) return print_json(wanted, err);
    if (!wanted) print_list();
    else if (!print_pages(wanted))
        return err_set(err, ERR_USAGE, "unknown policy '%.60s'; 'pagesim policies' lists them", wanted);
    return COMMAND_DONE;
}

const struct command command_policies = {
    .name = "policies",
    .summary = "what is built in, with options, defaults and sources",
    .usage = "[--json] [--plugin FILE] [NAME]",
    .options = FOR_POLICIES,
    .arguments = COMMAND_ARGS_OWN,
    .run = policies_run,
};
