/* pagesim run and sweep from outside: outputs, errors, exit statuses, nothing partial left behind. */
#include "tests/check.h"
#include "tests/cli_run.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TWO "{\"arrival_ns\":0,\"prompt_tokens\":17,\"output_tokens\":3}\n" \
            "{\"arrival_ns\":5,\"prompt_tokens\":20,\"output_tokens\":2}\n"

struct fixture {
    char *dir;
    char trace[300];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->dir = cli_temp_dir();
    snprintf(f->trace, sizeof f->trace, "%s", cli_write(f->dir, "t.jsonl", TWO, strlen(TWO)));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    cli_temp_remove(f->dir);
    free(f);
    return 0;
}

static json_t *parse(const struct cli_result *r)
{
    json_error_t error;
    json_t *root = json_loads(r->out, JSON_REJECT_DUPLICATES, &error);
    if (r->status != 0 || !root) fail_msg("status %d, %s, %s", r->status, r->err, error.text);
    return root;
}

static json_t *find(json_t *root, const char *path)
{
    char copy[100], *rest = copy;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *key; root && (key = strsep(&rest, ".")) != NULL;) root = json_object_get(root, key);
    return root;
}

/* The names that others script against. */
static void run__json__has_every_promised_key(void **state)
{
    struct fixture *f = *state;
    static const char *const keys[] = {
        "requests", "finished", "rejected", "unservable", "aborted", "length_capped", "steps", "simulated_ns",
        "saturated_ns", "preemptions", "evictions", "num_blocks", "usable_blocks", "block_size_tokens",
        "pool_bytes", "hit_rate_tokens", "hit_rate_blocks", "engine_hit_rate", "prefix_query_tokens",
        "prefix_hit_tokens", "prefix_self_hit_tokens", "states", "states_saturated", "utilization", "kv_usage",
        "internal_fragmentation", "reservation_waste", "external_fragmentation", "largest_run_index",
        "paper_split.token_states", "paper_split.reservation", "paper_split.internal",
        "paper_split.external_and_others", "saving_by_sharing", "lost_sharing.to_granularity",
        "lost_sharing.to_last_token", "lost_sharing.to_eviction", "running.mean", "running.mean_saturated",
        "running.max", "refusals.episodes", "refusals.requests", "refusals.by_kind.admission",
        "refusals.by_kind.growth", "refusals.by_class.despite_free", "refusals.by_class.despite_unused",
        "refusals.by_class.capacity", "refusals.by_cause.contiguity", "refusals.byte_ns_by_cause.capacity",
        "refusals.slots", "head_refused_though_free.steps", "head_refused_though_free.time", "ttft_ns.mean",
        "ttft_ns.p50", "ttft_ns.p90", "ttft_ns.p99", "tpot_ns.mean", "e2e_ns.p99", "output_tokens_per_s",
        "policy", "rules", "scheduler", "step_time", "trace", "trace_checksum",
    };
    struct cli_result r;
    CLI(&r, "run", f->trace, "--json");
    json_t *root = parse(&r);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (!find(root, keys[i])) fail_msg("%s is missing", keys[i]);
    }
    json_decref(root);
    cli_release(&r);
}

/* Every key that is printed is in the documentation. */
static void run__json__every_key_is_documented(void **state)
{
    struct fixture *f = *state;
    char *text = cli_read("docs/metrics.md");
    assert_non_null(text);
    struct cli_result r;
    CLI(&r, "run", f->trace, "--json", "--scheduler", "serial");
    json_t *root = parse(&r), *value, *inner;
    const char *key, *inner_key;
    json_object_foreach(root, key, value) {
        char quoted[100];
        snprintf(quoted, sizeof quoted, "`%s", key);
        if (!strstr(text, quoted)) fail_msg("docs/metrics.md lacks %s", key);
        if (!json_is_object(value) || strcmp(key, "options") == 0) continue;
        json_object_foreach(value, inner_key, inner) {
            snprintf(quoted, sizeof quoted, "%s`", inner_key);
            if (!strstr(text, quoted)) fail_msg("docs/metrics.md lacks %s.%s", key, inner_key);
        }
    }
    json_decref(root);
    cli_release(&r);
    free(text);
}

static void run__states__sum_to_one(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    CLI(&r, "run", f->trace, "--json", "--policy", "static", "--pool-tokens", "40");
    json_t *root = parse(&r), *share;
    const char *objects[] = {"states", "states_saturated"}, *key;
    for (size_t i = 0; i < 2; i++) {
        double sum = 0;
        json_t *states = json_object_get(root, objects[i]);
        json_object_foreach(states, key, share) sum += json_number_value(share);
        check_f64_near(sum, 1, 1e-9);
    }
    json_decref(root);
    cli_release(&r);
}

static void run__standard_input__is_read_once(void **state)
{
    (void)state;
    struct cli_input input = {.stdin_bytes = TWO, .stdin_count = strlen(TWO)};
    struct cli_result r;
    cli_run(&r, &input, (const char *const[]){"run", "-", "--json", NULL});
    json_t *root = parse(&r);
    check_i64_eq(json_integer_value(find(root, "requests")), 2);
    check_i64_eq(json_integer_value(find(root, "max_model_len")), 8192); /* the default of a pipe */
    json_decref(root);
    cli_release(&r);
}

static void run__max_requests__says_that_it_cut(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    CLI(&r, "run", f->trace, "--json", "--max-requests", "1");
    json_t *root = parse(&r);
    check_i64_eq(json_integer_value(find(root, "requests")), 1);
    check_str_has(r.err, "trace cut: only the first 1 requests were simulated");
    json_decref(root);
    cli_release(&r);
}

static void run__fail_if__exit_status_4_when_it_holds(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    CLI(&r, "run", f->trace, "--fail-if", "requests > 1 && preemptions == 0");
    assert_int_equal(r.status, 4);
    check_str_has(r.err, "condition holds: requests > 1 && preemptions == 0");
    cli_release(&r);
    CLI(&r, "run", f->trace, "--fail-if", "requests > 2");
    assert_int_equal(r.status, 0);
    cli_release(&r);
}

static void run__logs__have_their_headers_and_rows(void **state)
{
    struct fixture *f = *state;
    char timeline[300], events[300], oom[300];
    snprintf(timeline, sizeof timeline, "%s", cli_path(f->dir, "timeline.csv"));
    snprintf(events, sizeof events, "%s", cli_path(f->dir, "events.csv"));
    snprintf(oom, sizeof oom, "%s", cli_path(f->dir, "oom.csv"));
    struct cli_result r;
    /* 40 slots: the first takes a region of 22 (its max-model-len), the second must wait. */
    CLI(&r, "run", f->trace, "--policy", "static", "--pool-tokens", "40", "--step-time", "unit", "--timeline",
        timeline, "--timeline-interval", "1ms", "--events", events, "--oom-log", oom);
    assert_int_equal(r.status, 0);
    cli_release(&r);
    char *text = cli_read(timeline);
    check_str_has(text, "time_ns,live_bytes,dead_bytes,reserved_bytes,internal_bytes,rounding_bytes,cached_bytes,"
                        "cached_pinned_bytes,stranded_bytes,free_bytes,overhead_bytes,running\n0,");
    free(text);
    text = cli_read(events);
    check_str_has(text, "time_ns,event,request,a,b\n0,arrive,0,17,3\n0,admit,0,0,22\n");
    free(text);
    text = cli_read(oom);
    /* ask 22, need 21 (20 + 2 - 1), E = R = A = 40 - 22 = 18, shortfall 4. */
    check_str_has(text, "\nadmission,1000000,3000000,2,1,131072,22,21,18,18,18,4,");
    free(text);
    check_u64_eq(cli_count_entries(f->dir), 4);
}

/* Expected: 6 prompt tokens and 2 decoded ones are lost. Found: the default engine told 6, since it had not visited the
 * victim for two steps. 5 blocks of 4: the first takes 3 at once, the second 2; at 3 ms the first needs its fourth. */
static void run__events__tell_what_a_skipped_request_loses(void **state)
{
    struct fixture *f = *state;
    static const char trace[] = "{\"arrival_ns\":0,\"prompt_tokens\":10,\"output_tokens\":8}\n"
                                "{\"arrival_ns\":0,\"prompt_tokens\":6,\"output_tokens\":4}\n";
    char path[300], events[300];
    snprintf(path, sizeof path, "%s", cli_write(f->dir, "a.jsonl", trace, strlen(trace)));
    snprintf(events, sizeof events, "%s", cli_path(f->dir, "events.csv"));
    char *text[2];
    for (int plain = 0; plain < 2; plain++) {
        struct cli_result r;
        CLI(&r, "run", path, "--policy", "dynamic", "--block-size", "4", "--num-gpu-blocks-override", "6",
            "--step-time", "unit", "--events", events, plain ? "--plain-loop" : "--check");
        assert_int_equal(r.status, 0);
        cli_release(&r);
        text[plain] = cli_read(events);
        assert_non_null(text[plain]);
    }
    check_str_has(text[0], "\n3000000,preempt,1,8,0\n");
    check_str_eq(text[0], text[1]);
    free(text[0]);
    free(text[1]);
}

/* Under a window a prompt may be found whole: what asks for nothing is not refused for what others were promised. */
static void run__reserve_with_a_window__a_prompt_found_whole_starts(void **state)
{
    (void)state;
    struct cli_result r;
    CLI(&r, "run", "--trace",
        "gen:requests=150,arrivals=none,prompt=lognormal:4:1@1..700,output=lognormal:3:0.8@1..300,sessions=10,"
        "session-zipf=0.8,prefix-tokens=100,context-tokens-max=900",
        "--block-size", "4", "--scheduler", "reserve", "--pool-tokens", "3000", "--sliding-window", "200", "--step-time",
        "unit", "--check", "--check-every", "50", "--json");
    assert_int_equal(r.status, 0);
    check_str_has(r.out, "\"finished\": 150");
    cli_release(&r);
}

/* Events are the same whichever way the engine takes. */
static void run__events__plain_loop_and_skipping_agree(void **state)
{
    struct fixture *f = *state;
    static const char *const policies[] = {"static", "dynamic", "prefix", "jemalloc"};
    char events[300];
    snprintf(events, sizeof events, "%s", cli_path(f->dir, "events.csv"));
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        char *text[2];
        for (int plain = 0; plain < 2; plain++) {
            struct cli_result r;
            CLI(&r, "run",
                "gen:requests=200,arrivals=poisson:20,prompt=lognormal:5:1@1..900,output=lognormal:4:1@1..400,"
                "n=uniform:1:3,abort-ratio=0.2,abort-delay=exponential:3",
                "--policy", policies[i], "--pool-tokens", "2500", "--events", events,
                plain ? "--plain-loop" : "--seed=1");
            assert_int_equal(r.status, 0);
            cli_release(&r);
            text[plain] = cli_read(events);
            assert_non_null(text[plain]);
        }
        if (i > 0 && i < 3) check_str_has(text[0], ",preempt,");
        check_str_eq(text[0], text[1]);
        free(text[0]);
        free(text[1]);
    }
}

static void run__fail_if__says_what_could_not_be_judged(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    CLI(&r, "run", f->trace, "--fail-if", "hit_rate_tokens < 0.5"); /* no content ids */
    assert_int_equal(r.status, 0);
    check_str_has(r.err, "condition could not be judged, hit_rate_tokens is null: hit_rate_tokens < 0.5");
    cli_release(&r);
}

/* Blocks larger than the pool mean nothing to a policy that has none. */
static void run__static__any_block_size(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    CLI(&r, "run", f->trace, "--policy", "static", "--block-size", "4096", "--pool-tokens", "1000");
    assert_int_equal(r.status, 0);
    cli_release(&r);
}

/* The device of a run holds the pool as one allocation; PyTorch's format, read back by import. */
static void run__snapshot__is_imported_again(void **state)
{
    struct fixture *f = *state;
    char snapshot[300];
    snprintf(snapshot, sizeof snapshot, "%s", cli_path(f->dir, "run.pickle"));
    struct cli_result r;
    CLI(&r, "run", f->trace, "--pool-tokens", "1000", "--snapshot", snapshot);
    assert_int_equal(r.status, 0);
    cli_release(&r);
    CLI(&r, "device", "import", snapshot);
    assert_int_equal(r.status, 0);
    /* 1,000 slots of 131,072 bytes: a whole number of 2 MiB pages and a rest, which the segment rounds up. */
    check_str_has(r.out, "{\"op\":\"alloc\",\"id\":1,\"bytes\":131072000");
    cli_release(&r);
    CLI(&r, "run", f->trace, "--kv-cache-memory-bytes", "1TiB", "--snapshot", snapshot);
    assert_int_equal(r.status, 2);
    check_str_has(r.err, "--snapshot: a pool of 1099511627776 bytes does not fit on the device, an H200");
    cli_release(&r);
}

/* One clear line each, the right status, and nothing left behind. */
static void run__bad_input__one_line_and_nothing_left(void **state)
{
    struct fixture *f = *state;
    char missing[300];
    snprintf(missing, sizeof missing, "%s", cli_path(f->dir, "no/such/place"));
    const struct {
        const char *argv[8];
        int status;
        const char *line;
    } cases[] = {
        {{"run", f->trace, "--block-size", "0"}, 2, "--block-size: found '0', expected a count from 1 to 1048576"},
        {{"run", f->trace, "--kv-cache-memory-bytes", "1000"}, 2,
         "a pool of 1000 bytes is smaller than one block of 16 tokens, 2097152 bytes"},
        {{"run", f->trace, "--num-gpu-blocks-override", "1"}, 2,
         "policy prefix: pool of 2097152 bytes: expected at least one block of 2097152 bytes besides the null block"},
        {{"run", f->trace, "--no-such-option"}, 2, "--no-such-option: unknown option"},
        {{"run", f->trace, "--policy", "buddy"}, 2, "--policy: found 'buddy', expected one of "},
        {{"run", f->trace, "--scheduler", "v2"}, 2, "--scheduler: found 'v2', expected one of reserve, serial, v0, v1"},
        {{"run", f->trace, "--fail-if", "requests >"}, 2, "--fail-if: 'requests >': column 11: found '', expected a number"},
        {{"run", f->trace, "--fail-if", "speed > 1"}, 2, "--fail-if: 'speed > 1': no figure is called 'speed'"},
        {{"run", f->trace, "--no-enable-chunked-prefill", "--max-model-len", "4096"}, 2,
         "--max-num-batched-tokens: found 2048, expected at least --max-model-len, 4096, when prompts are not cut"},
        {{"run", f->trace, "--rules", "2026-04", "--watermark", "0.1"}, 2,
         "--watermark: found 0.1, expected none: rule set 2026-04 has no watermark"},
        {{"run", f->trace, "--cache-output", "trace"}, 3,
         "--cache-output: found 'trace', but the trace has no final_hash_ids"},
        {{"run", f->trace, "--oom-log", missing}, 1, "no/such/place: No such file or directory"},
        {{"run", f->dir}, 3, "found a directory, expected a file"},
        {{"run", f->trace, "--events", f->dir}, 2, "is a directory, expected a file"},
        {{"run", f->trace, "--plot", f->dir}, 2, "--plot: found no --timeline FILE, expected one to draw"},
        {{"run", "--policy", "static"}, 2, "--trace preset:azure-conv"},
        {{"run", f->trace, "--case", "tests/golden/vllm-v1/01-fcfs-no-cache"}, 2, "--trace: a case brings its own"},
        {{"run", "--case", f->dir}, 3, "/config.json: No such file or directory"},
        {{"sweep", f->trace, "--block-size", "1,x"}, 2, "--block-size: found 'x', expected a count from 1 to 1048576"},
        {{"sweep", f->trace, "--output", missing}, 1, "no/such/place: No such file or directory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cli_result r;
        cli_run(&r, NULL, cases[i].argv);
        if (r.status != cases[i].status) {
            fail_msg("case %zu: status %d, expected %d: %s", i, r.status, cases[i].status, r.err);
        }
        check_str_has(r.err, cases[i].line);
        check_u64_eq(r.out_bytes, 0);
        const char *newline = strchr(r.err, '\n');
        assert_true(newline && newline[1] == '\0');
        cli_release(&r);
        check_u64_eq(cli_count_entries(f->dir), 1);
    }
}

/* --- sweep ---------------------------------------------------------------------------------- */

static void sweep__lists__one_line_a_cell_in_order(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    CLI(&r, "sweep", f->trace, "--policy", "dynamic,prefix", "--block-size", "16,1", "--pool-tokens", "4000");
    assert_int_equal(r.status, 0);
    static const char *const expected[] = {"\"dynamic\"", "16", "\"dynamic\"", "1", "\"prefix\"", "16", "\"prefix\"", "1"};
    char *rest = r.out;
    for (size_t i = 0; i < 4; i++) {
        char *line = strsep(&rest, "\n"), policy[60], block[60];
        assert_non_null(rest);
        snprintf(policy, sizeof policy, "\"policy\": %s,", expected[2 * i]);
        snprintf(block, sizeof block, "\"options.block-size\": %s,", expected[2 * i + 1]);
        check_str_has(line, policy);
        check_str_has(line, block);
        check_str_has(line, "\"states.live\": ");
        check_str_has(line, "\"rules\": \"2026-08\"");
    }
    assert_true(rest && *rest == '\0');
    cli_release(&r);
}

static void sweep__threads__same_bytes(void **state)
{
    (void)state;
    struct cli_result one, two;
    CLI(&one, "sweep", "preset:shared-chat", "--max-requests", "300", "--policy", "static,jemalloc,dynamic,prefix,ideal",
        "--block-size", "4,16", "--pool-tokens", "40000", "--threads", "1");
    CLI(&two, "sweep", "preset:shared-chat", "--max-requests", "300", "--policy", "static,jemalloc,dynamic,prefix,ideal",
        "--block-size", "4,16", "--pool-tokens", "40000", "--threads", "4");
    assert_int_equal(one.status, 0);
    assert_true(one.out_bytes > 10000);
    check_str_eq(two.out, one.out);
    cli_release(&one);
    cli_release(&two);
}

/* A row of a sweep is what `run` prints for the same options. */
static void sweep__row__equals_the_run(void **state)
{
    struct fixture *f = *state;
    struct cli_result sweep, run;
    CLI(&sweep, "sweep", f->trace, "--policy", "static", "--pool-tokens", "40");
    CLI(&run, "run", f->trace, "--policy", "static", "--pool-tokens", "40", "--json");
    json_t *nested = parse(&run), *flat = parse(&sweep), *value;
    const char *key;
    size_t compared = 0;
    json_object_foreach(flat, key, value) {
        if (strncmp(key, "options.", 8) == 0) continue;
        if (!json_equal(value, find(nested, key))) fail_msg("%s differs", key);
        compared++;
    }
    assert_true(compared > 80);
    json_decref(nested);
    json_decref(flat);
    cli_release(&sweep);
    cli_release(&run);
}

/* Two prompts of 140 tokens, 9 blocks each, in a pool of 10: neither 10 + 25 % = 12 blocks nor any other setting holds
 * both, except one after the other, which is what a refusal means; at most one ever runs. */
static void run__explain_refusal__nothing_helps(void **state)
{
    struct fixture *f = *state;
    static const char two[] = "{\"arrival_ns\":0,\"prompt_tokens\":140,\"output_tokens\":3}\n"
                              "{\"arrival_ns\":0,\"prompt_tokens\":140,\"output_tokens\":3}\n";
    const char *trace = cli_write(f->dir, "two.jsonl", two, strlen(two));
    struct cli_result r;
    CLI(&r, "run", trace, "--json", "--num-gpu-blocks-override", "11", "--explain-refusal", "first", "--check",
        "--explain-boundary", "2MiB");
    json_t *root = parse(&r), *variant;
    const char *name;
    assert_true(json_is_true(find(root, "explain.found")));
    check_u64_eq((uint64_t)json_integer_value(find(root, "explain.refusal.request_line")), 2);
    check_str_eq(json_string_value(find(root, "explain.local.boundary.verdict")), "refused"); /* one block */
    json_object_foreach(find(root, "explain.global"), name, variant) {
        /* Of 11 blocks of 16 only 5 of 32 are made, one of them null: 128 tokens. */
        int unservable = strcmp(name, "block_size_32") == 0;
        assert_int_equal(json_is_true(json_object_get(variant, "request_unservable")), unservable);
        if (json_is_true(json_object_get(variant, "still_refused")) == unservable) fail_msg("%s helps", name);
    }
    assert_true(json_is_null(find(root, "explain.cheapest")));
    json_decref(root);
    cli_release(&r);
}

/* 62 tokens and 3 of output: 4 blocks. Both requests want 8 blocks; 7 are usable. A tenth more bytes
 * make no eighth block (8 * 1.1 = 8.8, one of them null), a quarter does. */
static void run__explain_refusal__larger_pool_helps(void **state)
{
    struct fixture *f = *state;
    static const char two[] = "{\"arrival_ns\":0,\"prompt_tokens\":62,\"output_tokens\":3}\n"
                              "{\"arrival_ns\":0,\"prompt_tokens\":62,\"output_tokens\":3}\n";
    const char *trace = cli_write(f->dir, "two.jsonl", two, strlen(two));
    struct cli_result r;
    CLI(&r, "run", trace, "--json", "--num-gpu-blocks-override", "8", "--kv-bytes-per-token", "1", "--explain-refusal",
        "1", "--policy", "dynamic");
    json_t *root = parse(&r);
    check_str_eq(json_string_value(find(root, "explain.local.boundary.verdict")), "granted");
    check_u64_eq((uint64_t)json_integer_value(find(root, "explain.local.boundary.moved_bytes")), 16);
    assert_true(json_is_true(find(root, "explain.global.pool_110_percent.still_refused")));
    assert_true(json_is_false(find(root, "explain.global.pool_125_percent.still_refused")));
    check_f64_near(json_number_value(find(root, "explain.global.pool_125_percent.episodes_change")), -1, 0);
    check_str_eq(json_string_value(find(root, "explain.cheapest")), "local.boundary");
    json_decref(root);
    cli_release(&r);
}

/* The same in regions of max_model_len, 65, of which 128 slots hold one; true lengths, 64, fit twice. Of 8 blocks one is
 * null, so that paging on demand refuses as well; single slots do not. */
static void run__explain_refusal__placement_and_reserve_are_tried(void **state)
{
    struct fixture *f = *state;
    static const char two[] = "{\"arrival_ns\":0,\"prompt_tokens\":62,\"output_tokens\":3}\n"
                              "{\"arrival_ns\":0,\"prompt_tokens\":62,\"output_tokens\":3}\n";
    const char *trace = cli_write(f->dir, "two.jsonl", two, strlen(two));
    struct cli_result r;
    CLI(&r, "run", trace, "--json", "--pool-tokens", "128", "--kv-bytes-per-token", "1", "--explain-refusal", "worst",
        "--policy", "static", "--reserve", "max");
    json_t *root = parse(&r);
    check_str_eq(json_string_value(find(root, "explain.refusal.primary")), "over_reservation");
    assert_true(json_is_true(find(root, "explain.global.placement_best_fit.still_refused")));
    assert_true(json_is_false(find(root, "explain.global.reserve_oracle.still_refused")));
    assert_true(json_is_true(find(root, "explain.global.reserve_oracle.clairvoyant")));
    assert_true(json_is_true(find(root, "explain.global.policy_dynamic.still_refused")));
    assert_true(json_is_false(find(root, "explain.global.policy_ideal.still_refused")));
    json_decref(root);
    cli_release(&r);
}

static void run__explain_refusal__bad_or_no_refusal(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    CLI(&r, "run", f->trace, "--json", "--explain-refusal", "first");
    json_t *root = parse(&r);
    assert_true(json_is_false(find(root, "explain.found")));
    json_decref(root);
    cli_release(&r);
    static const char *const bad[] = {"0", "last", "-1", "1x", "99999999999999999999", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CLI(&r, "run", f->trace, "--explain-refusal", bad[i]);
        assert_int_equal(r.status, 2);
        check_str_has(r.err, "explain-refusal");
        cli_release(&r);
    }
    struct cli_input input = {.stdin_bytes = TWO, .stdin_count = strlen(TWO)};
    cli_run(&r, &input, (const char *const[]){"run", "-", "--explain-refusal", "first", NULL});
    assert_int_equal(r.status, 2);
    check_str_has(r.err, "expected a file");
    cli_release(&r);
}

/* 3 MiB of device, 2 of weights and a pool of 10 blocks of 16 tokens of 1 KiB leave 864 KiB. At 44 KiB a token the first request's 17
 * tokens take 748, the second's 20, which come when the first is done, 880. */
static void run__device_model__step_meets_the_edge(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    const char *log = cli_path(f->dir, "oom.csv");
    CLI(&r, "run", f->trace, "--json", "--kv-bytes-per-token", "1KiB", "--num-gpu-blocks-override", "10", "--gpu-memory", "3MiB",
        "--weights-memory", "2MiB", "--activation-per-token", "44KiB", "--device-model", "budget", "--oom-log", log, "--step-time", "unit",
        "--step-ns", "1", "--check");
    json_t *root = parse(&r);
    check_u64_eq((uint64_t)json_integer_value(find(root, "device.ooms")), 1);
    assert_true(json_is_true(find(root, "device.ended")));
    check_u64_eq((uint64_t)json_integer_value(find(root, "device.pool_bytes")), 163840);
    check_u64_eq((uint64_t)json_integer_value(find(root, "device.free_min_bytes")), 1048576 - 163840 - 17 * 45056);
    check_u64_eq((uint64_t)json_integer_value(find(root, "refusals.by_kind.device")), 1);
    json_decref(root);
    cli_release(&r);
    char *text = cli_read(log), quoted[100];
    check_str_has(text, "\ndevice,5,5,1,");
    free(text);

    text = cli_read("docs/edge.md");
    CLI(&r, "run", f->trace, "--json", "--gpu-memory", "24GiB", "--device-model", "caching", "--late-buffer", "1MiB@step:1,2MiB@1s:torch");
    root = parse(&r);
    const char *key;
    json_t *value;
    json_object_foreach(find(root, "device"), key, value) {
        snprintf(quoted, sizeof quoted, "`%s`", key);
        check_str_has(text, quoted);
    }
    json_decref(root);
    free(text);
    cli_release(&r);

    static const char *const bad[][2] = {
        {"--late-buffer", "5MiB"}, {"--late-buffer", "x@1s"}, {"--late-buffer", "0@1s"}, {"--late-buffer", "1MiB@step:x"},
        {"--late-buffer", "1MiB@"}, {"--late-buffer", "1MiB@1s:torch"}, {"--policy", "static"}, {"--scheduler", "serial"},
        {"--weights-memory", "25GiB"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CLI(&r, "run", f->trace, "--gpu-memory", "24GiB", "--kv-cache-memory-bytes", "1GiB", "--device-model", "budget", "--device-boundary",
            "elastic", bad[i][0], bad[i][1]);
        if (r.status != 2) fail_msg("%s %s: status %d", bad[i][0], bad[i][1], r.status);
        cli_release(&r);
    }
    CLI(&r, "run", f->trace, "--device-model", "budget");
    assert_int_equal(r.status, 2);
    check_str_has(r.err, "--gpu-memory");
    cli_release(&r);
}

/* As above, rejecting: the second request's 880 KiB are 16,384 bytes more than the 864 KiB that are free. The pool has them: 8
 * of its usable 9 blocks of 16 KiB at least; and an elastic boundary takes them. */
static void run__explain_refusal__of_the_device(void **state)
{
    struct fixture *f = *state;
    struct cli_result r;
    CLI(&r, "run", f->trace, "--json", "--kv-bytes-per-token", "1KiB", "--num-gpu-blocks-override", "10", "--gpu-memory", "3MiB",
        "--weights-memory", "2MiB", "--activation-per-token", "44KiB", "--device-model", "budget", "--on-device-oom", "reject",
        "--step-time", "unit", "--step-ns", "1", "--explain-refusal", "first");
    json_t *root = parse(&r);
    check_str_eq(json_string_value(find(root, "explain.refusal.kind")), "device");
    check_u64_eq((uint64_t)json_integer_value(find(root, "explain.refusal.shortfall_units")), 16384);
    check_str_eq(json_string_value(find(root, "explain.local.compaction.verdict")), "does not apply");
    check_str_eq(json_string_value(find(root, "explain.local.boundary.verdict")), "granted");
    check_u64_eq((uint64_t)json_integer_value(find(root, "explain.local.boundary.moved_bytes")), 16384);
    assert_true(json_is_false(find(root, "explain.global.device_boundary_elastic.still_refused")));
    assert_true(json_is_true(find(root, "explain.global.block_size_8.still_refused")));
    json_decref(root);
    cli_release(&r);
}

/* The lines that an interrupted sweep left are not computed again; what was being written is. */
static void sweep__partial_file__is_taken_over(void **state)
{
    struct fixture *f = *state;
    char output[300];
    snprintf(output, sizeof output, "%s", cli_path(f->dir, "r.jsonl"));
    struct cli_result r;
    CLI(&r, "sweep", f->trace, "--block-size", "1,2,4", "--output", output);
    assert_int_equal(r.status, 0);
    check_u64_eq(r.out_bytes, 0);
    cli_release(&r);
    char *whole = cli_read(output);
    assert_non_null(whole);
    check_u64_eq(cli_count_entries(f->dir), 2);

    /* First line marked (steps 5 becomes 999999), the second cut in the middle. */
    char *second = strchr(whole, '\n') + 1, *steps = strstr(whole, "\"steps\": ");
    assert_true(steps && steps < second);
    char *partial = calloc(1, strlen(whole) + 100);
    size_t before = (size_t)(steps - whole) + strlen("\"steps\": ");
    const char *after = strchr(steps, ',');
    sprintf(partial, "%.*s999999%.*s%.*s", (int)before, whole, (int)(second - after), after, 40, second);
    cli_write(f->dir, "r.jsonl.partial", partial, strlen(partial));
    CLI(&r, "sweep", f->trace, "--block-size", "1,2,4", "--output", output);
    assert_int_equal(r.status, 0);
    cli_release(&r);
    char *resumed = cli_read(output);
    check_str_has(resumed, "\"steps\": 999999,");          /* the first line was taken as it stood */
    check_str_eq(strchr(resumed, '\n') + 1, second);        /* the others were computed */
    check_u64_eq(cli_count_entries(f->dir), 2);
    free(whole);
    free(partial);
    free(resumed);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(run__json__has_every_promised_key),
        CASE(run__json__every_key_is_documented),
        CASE(run__states__sum_to_one),
        CASE(run__standard_input__is_read_once),
        CASE(run__max_requests__says_that_it_cut),
        CASE(run__fail_if__exit_status_4_when_it_holds),
        CASE(run__logs__have_their_headers_and_rows),
        CASE(run__events__tell_what_a_skipped_request_loses),
        CASE(run__reserve_with_a_window__a_prompt_found_whole_starts),
        CASE(run__events__plain_loop_and_skipping_agree),
        CASE(run__fail_if__says_what_could_not_be_judged),
        CASE(run__static__any_block_size),
        CASE(run__snapshot__is_imported_again),
        CASE(run__bad_input__one_line_and_nothing_left),
        CASE(run__device_model__step_meets_the_edge),
        CASE(run__explain_refusal__of_the_device),
        CASE(run__explain_refusal__nothing_helps),
        CASE(run__explain_refusal__larger_pool_helps),
        CASE(run__explain_refusal__placement_and_reserve_are_tried),
        CASE(run__explain_refusal__bad_or_no_refusal),
        CASE(sweep__lists__one_line_a_cell_in_order),
        CASE(sweep__threads__same_bytes),
        CASE(sweep__row__equals_the_run),
        CASE(sweep__partial_file__is_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
