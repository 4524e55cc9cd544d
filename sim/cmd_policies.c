/* pagesim policies: what is built in, from the policies' own tables. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
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

static void print_options(const struct kv_policy_ops *ops)
{
    char range[256], text[1024];
    for (size_t i = 0; ops->options && ops->options[i]; i++) {
        const struct kv_option *option = ops->options[i];
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
        printf("    clairvoyant: a bound, in 'pagesim cache' on traces only\n");
}

/* Orders of eviction: of `cache`, and of policies that have --evict. */
static void print_eviction_orders(void)
{
    printf("\n\nEviction orders (--evict NAME in 'pagesim cache' and with --policy prefix)\n");
    for (size_t i = 0; i < kv_eviction_count(); i++) {
        const struct kv_eviction_ops *order = kv_eviction_at(i);
        printf("\n%s\n", order->name);
        print_line("", order->summary);
        print_line("source: ", order->source);
        print_eviction_flags(order);
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
        print_options(ops);
    }
    print_eviction_orders();
    print_schedulers();
}

static void print_page(const struct kv_policy_ops *ops)
{
    command_print_wrapped(ops->summary, printf("%s: ", ops->name), INDENT);
    command_print_wrapped(ops->source, printf("\nSource: ") - 1, INDENT);
    printf("\n");
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (ops->flags & FLAGS[i].flag) printf("  %-13s%s\n", FLAGS[i].name, FLAGS[i].meaning);
    if (!(ops->flags & KV_CONTIGUOUS)) printf("  %-13s%s\n", "blocks", "its units fit anywhere");
    if (ops->trim) printf("  %-13s%s\n", "trims", "gives blocks before a sliding window back");
    if (ops->options && ops->options[0]) printf("\nOptions, defaults in brackets\n");
    print_options(ops);
    printf("\nTry: pagesim run --policy %s --trace preset:azure-conv\n", ops->name);
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

static json_t *policy_json(const struct kv_policy_ops *ops)
{
    json_t *options = json_array();
    for (size_t i = 0; ops->options && ops->options[i]; i++)
        json_array_append_new(options, option_json(ops->options[i]));
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", ops->name, "summary", ops->summary, "source",
                     ops->source, "flags", flags_json(ops), "options", options);
}

/* Jansson's calls take NULL for what failed before, so one check at the end sees a lack of memory. */
static int print_json(const struct kv_policy_ops *one, struct err *err)
{
    json_t *root = one ? policy_json(one) : json_array();
    for (size_t p = 0; !one && p < kv_registry_count(); p++)
        if (json_array_append_new(root, policy_json(kv_registry_at(p))) != 0) {
            json_decref(root);
            root = NULL;
        }
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (!text) return err_set(err, ERR_FAILED, "out of memory");
    printf("%s\n", text);
    free(text);
    return COMMAND_DONE;
}

static int policies_run(const struct optset *set, int argc, char **argv, struct err *err)
{
    if (argc > 1) return err_set(err, ERR_USAGE, "found '%.60s', expected one policy", argv[1]);
    const struct kv_policy_ops *one = argc == 1 ? kv_registry_find(argv[0]) : NULL;
    if (argc == 1 && !one)
        return err_set(err, ERR_USAGE, "unknown policy '%.60s'; 'pagesim policies' lists them", argv[0]);
    if (optset_given(set, "json")) return print_json(one, err);
    if (one)
        print_page(one);
    else
        print_list();
    return COMMAND_DONE;
}

const struct command command_policies = {
    .name = "policies",
    .summary = "what is built in, with options, defaults and sources",
    .usage = "[--json] [NAME]",
    .options = FOR_POLICIES,
    .arguments = COMMAND_ARGS_OWN,
    .run = policies_run,
};
