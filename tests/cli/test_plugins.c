/* Plug-ins built as an author outside the tree would, against the installed headers. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct outside {
    char *dir;
    char root[4096];
};

/* Runs a shell line; its words may use $DIR (a folder of the test's own), $ROOT (the source tree) and $PAGESIM. */
static void shell(struct cli_result *r, const struct outside *o, const char *line)
{
    char text[16384];
    const char *program = cli_program();
    snprintf(text, sizeof text, "DIR='%s' ROOT='%s' PAGESIM='%s%s%s'; cd \"$DIR\" && %s", o->dir, o->root,
             *program == '/' ? "" : o->root, *program == '/' ? "" : "/", program, line);
    const struct cli_input input = {.program = "sh", .limit_ms = 120000};
    cli_run(r, &input, (const char *const[]){"-c", text, NULL});
}

static void must(const struct outside *o, const char *line)
{
    struct cli_result r;
    shell(&r, o, line);
    if (r.status != 0) fail_msg("%s\n%s%s", line, r.out, r.err);
    cli_release(&r);
}

/* The line ends with this status, and its standard error holds the text. */
static void refused(const struct outside *o, const char *line, int status, const char *text)
{
    struct cli_result r;
    shell(&r, o, line);
    if (r.status != status || !strstr(r.err, text)) fail_msg("%s: status %d\n%s\nexpected %d and '%s'", line, r.status, r.err, status, text);
    cli_release(&r);
}

/* The compiler that the tree was built with, or cc. */
#define BUILD "${CC:-cc} -std=c17 -Wall -Wextra -Werror -O1 -shared -fPIC -I include "

static int setup(void **state)
{
    static struct outside o;
    o.dir = cli_temp_dir();
    if (!getcwd(o.root, sizeof o.root)) return -1;
    must(&o, "(cd \"$ROOT\" && sh scripts/install_headers.sh \"$DIR/include/pagesim\")");
    must(&o, BUILD "\"$ROOT/tests/plugin_example/mine.c\" -o mine.so");
    must(&o, BUILD "\"$ROOT/tests/plugin_example/order.c\" -o order.so");
    must(&o, BUILD "\"$ROOT/tests/plugin_example/scheduler.c\" -o scheduler.so");
    must(&o, BUILD "\"$ROOT/tests/plugin_example/reserving.c\" -o reserving.so");
    must(&o, "printf '{\"arrival_ns\": 0, \"prompt_tokens\": 100, \"output_tokens\": 20, \"max_tokens\": 60}\\n"
             "{\"arrival_ns\": 1000, \"prompt_tokens\": 50, \"output_tokens\": 30, \"max_tokens\": 30}\\n"
             "{\"arrival_ns\": 2000, \"prompt_tokens\": 200, \"output_tokens\": 5, \"max_tokens\": 10}\\n' > trace.jsonl");
    *state = &o;
    return 0;
}

static int teardown(void **state)
{
    cli_temp_remove(((struct outside *)*state)->dir);
    return 0;
}

static uint64_t number(const char *json, const char *key)
{
    char text[80];
    snprintf(text, sizeof text, "\"%s\": ", key);
    const char *at = strstr(json, text);
    if (!at) fail_msg("no %s", key);
    return strtoull(at + strlen(text), NULL, 10);
}

/* In 400 slots: 100 + 60, then 50 + 30, together 240; the third wants 210 and must wait until both have ended,
 * although 160 are free: one episode. */
static void allocator__outside_the_tree__runs_under_checks(void **state)
{
    struct cli_result r;
    shell(&r, *state, "$PAGESIM run --plugin ./mine.so --policy bump --pool-tokens 400 trace.jsonl --step-time unit --check --json");
    if (r.status != 0) fail_msg("%s", r.err);
    check_u64_eq(number(r.out, "finished"), 3);
    check_u64_eq(number(r.out, "episodes"), 1);
    check_u64_eq(number(r.out, "preemptions"), 0);
    cli_release(&r);
    /* without a slash, with '=', and from a configuration file */
    must(*state, "$PAGESIM run --plugin=mine.so --policy bump --pool-tokens 400 trace.jsonl > /dev/null");
    must(*state, "printf 'plugin = ./mine.so\\npolicy = bump\\n' > c.ini && $PAGESIM run --config c.ini --pool-tokens 400 trace.jsonl > /dev/null");
    must(*state, "$PAGESIM sweep --plugin ./mine.so --policy bump,dynamic,static --pool-tokens 400 trace.jsonl | grep -c bump > /dev/null");
    must(*state, "$PAGESIM policies bump --plugin ./mine.so | grep 'every call is checked' > /dev/null");
}

/* A loop of 5 over 4 places, 400 references: lru hits nothing. mru misses the first four; then 4, which takes the place of 3; 0, 1, 2
 * hit; 3 takes the place of 2; and so on: every fourth misses, 396 / 4 = 99, and 297 hit. */
static void eviction_order__outside_the_tree__is_a_choice_everywhere(void **state)
{
    struct cli_result r;
    must(*state, "i=0; while [ $i -lt 400 ]; do echo $((i % 5)); i=$((i + 1)); done > ids.txt");
    shell(&r, *state, "$PAGESIM cache --plugin ./order.so --stream --ids ids.txt --format text --capacity 4 --evict lru,mru --json");
    if (r.status != 0) fail_msg("%s", r.err);
    const char *second = strstr(r.out, "block_stream_mru");
    assert_non_null(second);
    check_u64_eq(number(r.out, "hits"), 0);
    check_u64_eq(number(second, "hits"), 297);
    cli_release(&r);
    must(*state, "$PAGESIM run --plugin ./order.so --policy prefix --evict mru --pool-tokens 400 trace.jsonl > /dev/null");
    must(*state, "$PAGESIM run --plugin ./mine.so --plugin ./order.so --policy prefix --evict mru --pool-tokens 400 trace.jsonl > /dev/null");
}

/* Written after the same rules, `in-order` decides what v1 decides, and `reserving` what reserve decides: the results differ in the
 * name alone. */
static void schedulers__like_built_in_ones__same_bytes(void **state)
{
    static const char *const RUNS[] = {
        "preset:azure-conv --max-requests 300 --policy dynamic --pool-tokens 12000 --step-time unit --step-ns 50ms",
        "preset:azure-conv --max-requests 300 --policy prefix --pool-tokens 12000 --rules 2026-04 --max-num-seqs 20",
        "preset:azure-code --max-requests 200 --policy static --pool-tokens 40000 --long-prefill-token-threshold 700",
        "preset:shared-chat --max-requests 300 --policy prefix --pool-tokens 9000 --host-cache 1GB",
        "samples.jsonl --policy prefix --pool-tokens 2000 --scheduling-policy priority",
        "samples.jsonl --policy prefix --evict ttl --pool-tokens 1000 --check",
        "trace.jsonl --policy prefix --pool-tokens 208 --block-size 4 --no-enable-chunked-prefill --check",
    };
    must(*state, "awk 'BEGIN { for (i = 0; i < 200; i++) printf \"{\\\"arrival_ns\\\": %d, \\\"prompt_tokens\\\": %d, \\\"output_tokens\\\": %d, "
                 "\\\"n\\\": %d, \\\"priority\\\": %d}\\n\", i * 1000, 1 + i * 37 % 300, 1 + i * 53 % 90, 1 + i % 3, i * 7 % 5 }' > samples.jsonl");
    char line[1024];
    for (size_t i = 0; i < sizeof RUNS / sizeof RUNS[0]; i++) {
        snprintf(line, sizeof line,
                 "run() { $PAGESIM run %s --plugin ./scheduler.so --plugin ./reserving.so --plain-loop --json --scheduler \"$@\"; }; "
                 "same() { run $1 --events a.csv > a.json && run $2 --events b.csv | sed \"s/\\\"scheduler\\\": \\\"$2\\\"/\\\"scheduler\\\": \\\"$1\\\"/\" > b.json && cmp a.json b.json && cmp a.csv b.csv && "
                 "grep -q '\"'$1'\"' a.json; }; same in-order v1%s", RUNS[i], strstr(RUNS[i], "priority") ? "" : " && same reserving reserve");
        must(*state, line);
    }
}

/* 100, 50 and 200 prompt tokens at once, 64 tokens a step, blocks of 16. v1 takes 64 of the first. By length the 50 go first, in 4 blocks,
 * then 14 of the 100, in one. In the second step 1 + 63, then 1 + 23, which leaves 40 for the 200, in 3 blocks. */
static void shortest_first__prompts_at_once__short_ones_start_first(void **state)
{
    must(*state, "sed 's/[12]000/0/' trace.jsonl > together.jsonl");
    must(*state, "run() { $PAGESIM run --plugin ./scheduler.so --pool-tokens 800 --max-num-batched-tokens 64 --step-time unit --check together.jsonl "
                 "--events e.csv --scheduler \"$@\" > /dev/null && grep admit e.csv | head -n 1; }; test \"$(run v1)\" = 0,admit,0,0,4 && run shortest-first && "
                 "test \"$(grep admit e.csv | tr '\\n' ' ')\" = '0,admit,1,0,4 0,admit,0,0,1 2000000,admit,2,0,3 '");
    /* One at a time, out of the middle of the queue, with a policy that listens to its head: in the order in which sort(1) puts them. */
    must(*state, "awk 'BEGIN { for (i = 0; i < 150; i++) printf \"{\\\"arrival_ns\\\": 0, \\\"prompt_tokens\\\": %d, \\\"output_tokens\\\": 2}\\n\", 1 + i * 37 % 100 }' > many.jsonl && "
                 "$PAGESIM run many.jsonl --plugin ./scheduler.so --scheduler shortest-first --policy prefix --evict queue-aware --queue-depth 5 --pool-tokens 400 "
                 "--max-num-seqs 1 --step-time unit --check --events e.csv > /dev/null && awk -F, '$2 == \"admit\" { print $3 }' e.csv > order && "
                 "awk 'BEGIN { for (i = 0; i < 150; i++) print 1 + i * 37 % 100, i }' | sort -n -k 1,1 -k 2,2 | cut -d ' ' -f 2 | cmp - order && test $(wc -l < order) = 150");
}

/* It lets all wait, and the last request comes after a hundred days: 8.64e12 steps, if each were made. */
static void idle_scheduler__last_arrival_far_away__ends_at_once(void **state)
{
    must(*state, BUILD "-DBROKEN=19 \"$ROOT/tests/plugin_example/broken_scheduler.c\" -o lazy.so");
    must(*state, "(cat trace.jsonl && echo '{\"arrival_ns\": 8640000000000000, \"prompt_tokens\": 9, \"output_tokens\": 2}') > far.jsonl");
    refused(*state, "$PAGESIM run far.jsonl --plugin ./lazy.so --scheduler broken --step-time unit --step-ns 1us", 1,
            "step 4: 4 requests are left and none can go on: scheduler broken scheduled nothing");
}

static void scheduler_checks__broken_plug_ins__named_at_the_call(void **state)
{
    static const struct {
        const char *options, *says;
    } FAULTS[] = {
        {"", NULL},
        {"", "pass 2 (extend): request 0: it is scheduled in this pass already"},
        {"--max-num-batched-tokens 64", "pass 1 (admit): request 0: 100 tokens for each of 1 sequences were given, the step has only 64 left"},
        {"", "pass 2 (extend): request 0: 2 tokens were given, it has only 1 left to compute"},
        {"", "pass 2 (extend): request 0: no tokens were given"},
        {"", "pass 2 (extend): request 0: it does not run, it waits"},
        {"--pool-tokens 160", "(units): request 2: it has ended"},
        {"", "pass 1 (admit): request 0: it was not looked up, or the pool has changed since"},
        {"", "pass 2 (admit): request 1: it was not looked up, or the pool has changed since"},
        {"", "pass 1 (preempt): request 0: it was admitted in this pass"},
        {"", "pass 2 (look_up): request 0: it was preempted in this pass, and has to wait until the next"},
        {"", "pass 1 (unservable): request 0: the pool has as many units as it is said to need"},
        {"--pool-tokens 208", "pass 17 (extend): request 1: it asks for as much again, although nothing has changed since it was refused"},
        {"--max-num-seqs 1", "pass 2 (admit): request 1: its samples have no place among max_num_seqs"},
        {"", "pass 1 (wait_for_slot): request 0: its samples have a place among max_num_seqs"},
        {"", "pass 1 (next_waiting): request 0: it does not wait, it runs"},
        {"--no-enable-chunked-prefill --max-num-batched-tokens 300", "pass 1 (admit): request 0: prompts may not be cut, and it was given less than it has left"},
        {"", "pass 1 (admit): no request was given"},
        {"", "(first_running): called outside of a pass"},
        {"", "step 3: 3 requests are left and none can go on: scheduler broken scheduled nothing"},
        {"", "requests are left and none can go on: scheduler broken made 10"},
    };
    const struct outside *o = *state;
    char line[1024];
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        snprintf(line, sizeof line, BUILD "-DBROKEN=%zu \"$ROOT/tests/plugin_example/broken_scheduler.c\" -o broken.so", i);
        must(o, line);
        struct cli_result r;
        snprintf(line, sizeof line, "ulimit -c 0; $PAGESIM run --plugin ./broken.so --scheduler broken --policy prefix --step-time unit trace.jsonl %s %s",
                 strstr(FAULTS[i].options, "pool-tokens") ? "" : "--pool-tokens 272", FAULTS[i].options);
        shell(&r, o, line);
        bool failed = r.status != 0 && FAULTS[i].says && strstr(r.err, "scheduler broken") && strstr(r.err, FAULTS[i].says);
        if (i >= 19) failed = r.status == 1 && strstr(r.err, FAULTS[i].says);
        if (failed != (FAULTS[i].says != NULL)) fail_msg("fault %zu: %d %s", i, r.status, r.err);
        if (!FAULTS[i].says) check_u64_eq((uint64_t)r.status, 0);
        cli_release(&r);
    }
    must(o, BUILD "-DBROKEN=0 -DOLD_ABI \"$ROOT/tests/plugin_example/broken_scheduler.c\" -o old.so");
    refused(o, "$PAGESIM run --plugin ./old.so trace.jsonl", 2, "./old.so: found scheduler ABI version 99, expected 1");
    must(o, BUILD "-Wno-unused-function -DBROKEN=0 -DTABLE='.flags = 0' \"$ROOT/tests/plugin_example/broken_scheduler.c\" -o half.so");
    refused(o, "$PAGESIM run --plugin ./half.so trace.jsonl", 2, "./half.so: scheduler 'broken' has one of create, destroy, but not both");
    must(o, BUILD "-DBROKEN=16 -DTABLE='.destroy = destroy, .flags = SCHEDULER_WHOLE_PROMPTS' \"$ROOT/tests/plugin_example/broken_scheduler.c\" -o cuts.so");
    refused(o, "$PAGESIM run --plugin ./cuts.so --scheduler broken trace.jsonl --max-num-batched-tokens 64", 2, "expected at least --max-model-len, 205");
    refused(o, "ulimit -c 0; $PAGESIM run --plugin ./cuts.so --scheduler broken trace.jsonl", 134, "pass 1 (admit): request 0: prompts may not be cut");
    must(o, BUILD "-DBROKEN=0 -DTABLE='.destroy = destroy, .flags = 4' \"$ROOT/tests/plugin_example/broken_scheduler.c\" -o flags.so");
    refused(o, "$PAGESIM run --plugin ./flags.so trace.jsonl", 2, "./flags.so: scheduler 'broken' has unknown flags");
    must(o, BUILD "-DBROKEN=0 -DTABLE='.destroy = destroy, .default_watermark = 1.5' \"$ROOT/tests/plugin_example/broken_scheduler.c\" -o mark.so");
    refused(o, "$PAGESIM run --plugin ./mark.so trace.jsonl", 2, "./mark.so: scheduler 'broken' has a default_watermark outside 0 <= .. < 1");
    refused(o, "$PAGESIM run --plugin ./scheduler.so --plugin ./scheduler.so trace.jsonl", 2, "scheduler 'in-order' exists");
}

static void loading__what_is_no_plug_in__one_clear_line(void **state)
{
    const struct outside *o = *state;
    refused(o, "$PAGESIM run --plugin ./none.so trace.jsonl", 2, "--plugin: ./none.so: cannot open shared object file");
    refused(o, "$PAGESIM run --plugin ./trace.jsonl trace.jsonl", 2, "trace.jsonl: ");
    refused(o, "$PAGESIM run --plugin ./mine.so --plugin ./mine.so trace.jsonl", 2, "policy 'bump' exists");
    must(o, "echo 'int nothing;' > empty.c && ${CC:-cc} -shared -fPIC empty.c -o empty.so");
    refused(o, "$PAGESIM run --plugin ./empty.so trace.jsonl", 2, "./empty.so: found no symbol `pagesim_plugin`");
    must(o, BUILD "-DBROKEN=0 -DOLD_ABI \"$ROOT/tests/plugin_example/broken.c\" -o old.so");
    refused(o, "$PAGESIM run --plugin ./old.so trace.jsonl", 2, "./old.so: found policy ABI version 99, expected 2");
    refused(o, "$PAGESIM run --policy bump trace.jsonl", 2, "bump");
}

/* Each fault is found at the call that made it, and names the policy. Status: the signal of abort. */
static void checks__broken_plug_ins__named_at_the_call(void **state)
{
    static const struct {
        const char *fault, *says;
    } FAULTS[] = {
        {"1", "policy simple: call 1 (admit): the facts add up to less than the pool"},
        {"2", "(admit): the blocks in the tables are not those that the facts call held"},
        {"3", "(admit): a refused call changed the facts"},
        {"4", "(release): a released sequence still has slots"},
        {"5", "policy simple: call 1 (admit): more was granted than it had called obtainable"},
    };
    const struct outside *o = *state;
    char line[512];
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        snprintf(line, sizeof line, BUILD "-DBROKEN=%s \"$ROOT/tests/plugin_example/broken.c\" -o broken.so", FAULTS[i].fault);
        must(o, line);
        struct cli_result r;
        shell(&r, o, "ulimit -c 0; $PAGESIM run --plugin ./broken.so --policy simple --pool-tokens 272 trace.jsonl --check");
        if (r.status == 0 || !strstr(r.err, FAULTS[i].says)) fail_msg("fault %s: %d %s", FAULTS[i].fault, r.status, r.err);
        cli_release(&r);
    }
    must(o, BUILD "-DBROKEN=0 \"$ROOT/tests/plugin_example/broken.c\" -o sound.so");
    must(o, "$PAGESIM run --plugin ./sound.so --policy simple --pool-tokens 272 trace.jsonl --check > /dev/null");
}

/* The contract tests of this build go over plug-ins too; and the bound is above their orders. */
static void contract_tests__plug_ins__pass(void **state)
{
    struct cli_result r;
    shell(&r, *state, "PAGESIM_TEST_PLUGINS=$DIR/order.so && export PAGESIM_TEST_PLUGINS && unset PAGESIM_TRACES && cd \"$ROOT\" && "
                      "\"$(dirname \"$PAGESIM\")\"/tests/unit/test_cache_orders");
    if (r.status != 0 || !strstr(r.out, "OK ] opt__random_traces__no_order_above")) fail_msg("%s%s", r.out, r.err);
    cli_release(&r);
    shell(&r, *state, "PAGESIM_TEST_PLUGINS=$DIR/mine.so:$DIR/order.so && export PAGESIM_TEST_PLUGINS && cd \"$ROOT\" && "
                      "\"$(dirname \"$PAGESIM\")\"/tests/contract/test_allocator_contract");
    if (r.status != 0 || !strstr(r.out, "OK ] bump") || !strstr(r.out, "OK ] prefix evict=mru")) fail_msg("%s%s", r.out, r.err);
    cli_release(&r);
    shell(&r, *state, "PAGESIM_TEST_PLUGINS=$DIR/order.so && export PAGESIM_TEST_PLUGINS && cd \"$ROOT\" && "
                      "\"$(dirname \"$PAGESIM\")\"/tests/model/test_late_keys");
    if (r.status != 0 || !strstr(r.out, "OK ] mru")) fail_msg("%s%s", r.out, r.err);
    cli_release(&r);
    shell(&r, *state, "PAGESIM_TEST_PLUGINS=$DIR/scheduler.so:$DIR/reserving.so && export PAGESIM_TEST_PLUGINS && cd \"$ROOT\" && "
                      "\"$(dirname \"$PAGESIM\")\"/tests/model/test_engine_properties");
    if (r.status != 0 || !strstr(r.out, "plug-in schedulers: sums hold") || !strstr(r.out, "plug-ins like built-in schedulers: the same bytes")) fail_msg("%s%s", r.out, r.err);
    cli_release(&r);
}

/* Runs the commands of the guide, its lines indented by four, in order, in a folder that looks like the tree. */
static void guide__every_command__runs(void **state)
{
    const struct outside *o = *state;
    size_t commands = 0;
    char *guide = cli_read("docs/policy-guide.md");
    assert_non_null(guide);
    must(o, "mkdir guide && ln -s \"$ROOT\"/* guide/");
    for (char *line = strtok(guide, "\n"); line; line = strtok(NULL, "\n")) {
        static const char *const starts[] = {"    make ", "    cc ", "    inst/"};
        bool command = false;
        for (size_t i = 0; i < 3; i++) command = command || strncmp(line, starts[i], strlen(starts[i])) == 0;
        if (!command) continue;
        char text[2048];
        /* as the tree was built, so that nothing is built anew */
        snprintf(text, sizeof text,
                 "cd guide && mode=$(basename \"$(dirname \"$PAGESIM\")\") && "
                 "CC=$(sed 's/ -std.*//' \"$(dirname \"$PAGESIM\")/flags\") MODE=$mode && export CC MODE && unset MAKEFLAGS MAKELEVEL && %s",
                 line + 4);
        must(o, text);
        commands++;
    }
    assert_true(commands >= 8);
    must(o, "test -s guide/results.jsonl && test -d guide/plots && grep -q shortest-first guide/schedulers.jsonl && test -d guide/plots-schedulers && test $(grep -c '\"bump\"' guide/results.jsonl) -ge 1");
    must(o, "nm guide/inst/lib/libpagesim.a | grep -q 'T scheduler_admit' && grep -q -e '-lpagesim' guide/inst/lib/pkgconfig/pagesim.pc");
    free(guide);
}

static void headers__cxx__compile(void **state)
{
    must(*state, "command -v c++ > /dev/null || exit 0; printf '#include <pagesim/scheduler.h>\\n#include <pagesim/plugin.h>\\n' > x.cc && c++ -std=c++17 -Wall -Werror -I include -fsyntax-only x.cc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocator__outside_the_tree__runs_under_checks),
        cmocka_unit_test(eviction_order__outside_the_tree__is_a_choice_everywhere),
        cmocka_unit_test(loading__what_is_no_plug_in__one_clear_line),
        cmocka_unit_test(checks__broken_plug_ins__named_at_the_call),
        cmocka_unit_test(schedulers__like_built_in_ones__same_bytes),
        cmocka_unit_test(shortest_first__prompts_at_once__short_ones_start_first),
        cmocka_unit_test(idle_scheduler__last_arrival_far_away__ends_at_once),
        cmocka_unit_test(scheduler_checks__broken_plug_ins__named_at_the_call),
        cmocka_unit_test(headers__cxx__compile),
        cmocka_unit_test(contract_tests__plug_ins__pass),
        cmocka_unit_test(guide__every_command__runs),
    };
    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
