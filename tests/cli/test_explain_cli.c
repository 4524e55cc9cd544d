/* pagesim explain: pictures of small pools worked out by hand, commands through a pipe, sizes of screens. */
#include "tests/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli_run.h"

static int setup(void **state)
{
    setenv("LC_ALL", "C", 1);
    unsetenv("COLUMNS");
    unsetenv("LINES");
    *state = cli_temp_dir();
    return 0;
}

static int teardown(void **state)
{
    cli_temp_remove(*state);
    return 0;
}

static const char *write_trace(const char *dir, const char *lines)
{
    return cli_write(dir, "trace.jsonl", lines, strlen(lines));
}

#define UNIT "--step-time", "unit", "--step-ns", "1000"

static void check_picture(const char *expected, struct cli_result *r)
{
    check_str_eq(r->err, "");
    check_i64_eq(r->status, 0);
    check_str_eq(r->out, expected);
    cli_release(r);
}

/* --- by hand ------------------------------------------------------------------------------------ */

/* Blocks of 4: 5 prompt tokens fill one and 1 slot of a second; the final 5 + 3 - 1 = 7 tokens leave 1 slot empty for good. */
#define ONE "{\"arrival_ns\": 0, \"prompt_tokens\": 5, \"output_tokens\": 3}\n"
#define ONE_OPTIONS "--policy", "prefix", "--block-size", "4", "--num-gpu-blocks-override", "6", UNIT

static void at__prefix_scheduled__every_slot(void **state)
{
    struct cli_result r;
    CLI(&r, "explain", write_trace(*state, ONE), ONE_OPTIONS, "--at", "0");
    check_picture("step 0, scheduled at 0 ns; prefix, 5 blocks of 4\n"
                  "slots: live 5 reserved 2 internal 1 free 12 overhead 4\n"
                  "* request 0 admitted: 2 new blocks\n"
                  "* request 0 arrived: 5 prompt tokens\n"
                  "0[xxxx]   1[AAAA]#  2[A..!]   3[    ]   4[    ]   5[    ]\n"
                  "signs: A live . reserved ! internal blank free x overhead ]# has a key\n"
                  "A request 0: 5 of 7 tokens; blocks 1 2\n"
                  "free queue: 3 4 5\n"
                  "hash chains: 1\n"
                  "waiting: nobody\n",
                  &r);
}

/* The keyed block stays and goes to the tail of the queue; the other, without a key, to its head. */
static void at__prefix_end_of_the_last_step__cached_and_queue(void **state)
{
    struct cli_result r;
    CLI(&r, "explain", write_trace(*state, ONE), ONE_OPTIONS, "--at", "2+");
    check_picture("step 2+, ended at 3000 ns; prefix, 5 blocks of 4\n"
                  "slots: cached 4 free 16 overhead 4\n"
                  "* request 0 finished with 3 output tokens\n"
                  "0[xxxx]   1[cccc]#  2[    ]   3[    ]   4[    ]   5[    ]\n"
                  "signs: c cached blank free x overhead ]# has a key\n"
                  "nothing runs\n"
                  "free queue: 2 3 4 5 1#\n"
                  "hash chains: 1\n"
                  "waiting: nobody\n",
                  &r);
}

static void at__utf8_locale__other_signs(void **state)
{
    struct cli_result r;
    setenv("LC_ALL", "C.UTF-8", 1);
    CLI(&r, "explain", write_trace(*state, ONE), ONE_OPTIONS, "--at", "0");
    check_str_has(r.out, "2[A\u00b7\u00b7\u2591]   3[    ]");
    check_str_has(r.out, "signs: A live \u00b7 reserved \u2591 internal blank free x overhead ]# has a key\n");
    cli_release(&r);
}

/* First-fit: the request of 30 slots is gone, one of 20 has its place; 35 find 10 and 30 free in two pieces. */
static void at__static_with_a_hole__to_scale(void **state)
{
    struct cli_result r;
    const char *trace = write_trace(*state, "{\"arrival_ns\": 0, \"prompt_tokens\": 29, \"output_tokens\": 2}\n"
                                            "{\"arrival_ns\": 0, \"prompt_tokens\": 31, \"output_tokens\": 10}\n"
                                            "{\"arrival_ns\": 2000, \"prompt_tokens\": 11, \"output_tokens\": 10}\n"
                                            "{\"arrival_ns\": 2000, \"prompt_tokens\": 35, \"output_tokens\": 1, \"id\": \"big\"}\n");
    CLI(&r, "explain", trace, "--policy", "static", "--reserve", "oracle", "--pool-tokens", "100", UNIT, "--at", "3");
    check_picture("step 3, scheduled at 3000 ns; static, 100 slots\n"
                  "slots: live 46 reserved 14 stranded 10 free 30\n"
                  "* request big had to wait: it needed 35 slots; 40 of 100 free, 30 obtainable\n"
                  " 0|CCCCCCCCCCCC........          BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB......|\n"
                  "70|                              |\n"
                  "signs: A live . reserved blank free\n"
                  "B request 1: 34 of 40 tokens; slots 30..70\n"
                  "C request 2: 12 of 20 tokens; slots 0..20\n"
                  "waiting: D request big (35 tokens)\n",
                  &r);
}

/* Buddy: 5 slots take a chunk of 8, 3 are rounding. */
static void at__buddy__rounding(void **state)
{
    struct cli_result r;
    CLI(&r, "explain", write_trace(*state, "{\"arrival_ns\": 0, \"prompt_tokens\": 4, \"output_tokens\": 2}\n"), "--policy", "static",
        "--reserve", "oracle", "--placement", "buddy", "--pool-tokens", "16", UNIT, "--at", "0");
    check_str_has(r.out, " 0|AAAA.%%%        |\nsigns: A live . reserved % rounding blank free\n"
                         "A request 0: 4 of 5 tokens; slots 0..5 (to 8)\n");
    cli_release(&r);
}

/* Two blocks of 4; at 4 tokens each both need a second one: the later request has to give its block. */
static void at__preemption__says_why(void **state)
{
    struct cli_result r;
    CLI(&r, "explain",
        write_trace(*state, "{\"arrival_ns\": 0, \"prompt_tokens\": 4, \"output_tokens\": 4}\n{\"arrival_ns\": 0, \"prompt_tokens\": 4, \"output_tokens\": 4}\n"),
        "--policy", "dynamic", "--block-size", "4", "--num-gpu-blocks-override", "3", UNIT, "--at", "1");
    check_picture("step 1, scheduled at 1000 ns; dynamic, 2 blocks of 4\n"
                  "slots: live 5 reserved 2 internal 1 overhead 4\n"
                  "* request 1 preempted: request 0 needed 1 block, 0 of 2 were free\n"
                  "* request 0 could not grow: it needed 1 block, 0 of 2 were free\n"
                  "* request 0 grew to 5 tokens: 1 new block\n"
                  "0[xxxx]   1[AAAA]   2[A..!]\n"
                  "signs: A live . reserved ! internal x overhead\n"
                  "A request 0: 5 of 7 tokens; blocks 1 2\n"
                  "free queue: empty\n"
                  "waiting: B request 1 (5 tokens, again)\n",
                  &r);
}

/* Two samples of a prompt of 5: block 1 is shared, block 2 was copied to 3 before both wrote to it. */
static void at__samples__holders_and_copy(void **state)
{
    struct cli_result r;
    CLI(&r, "explain", write_trace(*state, "{\"arrival_ns\": 0, \"prompt_tokens\": 5, \"output_tokens\": 4, \"n\": 2}\n"), "--policy",
        "dynamic", "--block-size", "4", "--num-gpu-blocks-override", "5", UNIT, "--at", "1");
    check_str_has(r.out, "* block 2 copied to 3 for request 0: others hold it too\n");
    check_str_has(r.out, "0[xxxx]   1[AAAA]2  2[AA..]   3[AA..]   4[    ]\n"
                         "signs: A live . reserved blank free x overhead ]2 two hold it\n"
                         "A request 0 sample 1: 6 of 8 tokens; blocks 1 3\n"
                         "A request 0 sample 2: 6 of 8 tokens; blocks 1 2\n"
                         "free queue: 4\n");
    cli_release(&r);
}

/* --- commands through a pipe -------------------------------------------------------------------- */

static char *commands(void *state, const char *text)
{
    struct cli_result r;
    const struct cli_input input = {.stdin_bytes = text, .stdin_count = strlen(text)};
    const char *trace = write_trace(state, "{\"arrival_ns\": 0, \"prompt_tokens\": 4, \"output_tokens\": 4, \"id\": \"a\"}\n"
                                           "{\"arrival_ns\": 0, \"prompt_tokens\": 4, \"output_tokens\": 4, \"id\": \"b\"}\n");
    cli_run(&r, &input, (const char *const[]){"explain", trace, "--policy", "prefix", "--block-size", "4", "--num-gpu-blocks-override", "3", UNIT, NULL});
    check_i64_eq(r.status, 0);
    check_str_eq(r.err, "");
    assert_null(strchr(r.out, '\033'));
    char *heads = calloc(1, r.out_bytes + 1), *line = r.out;
    assert_non_null(heads);
    for (; *line; line = strchr(line, '\n') + 1) {
        size_t n = (size_t)(strchr(line, '\n') - line) + 1;
        const char *semicolon = memchr(line, ';', n);
        if (strncmp(line, "step ", 5) == 0) strcat(strncat(heads, line, (size_t)(semicolon - line)), "\n");
        else if (line[0] >= 'A' && line[0] <= 'Z' && line[1] > ' ') strncat(heads, line, n);
    }
    cli_release(&r);
    return heads;
}

/* a: prefilled in step 0, needs a second block in step 1, so b is preempted; a's last token is step 3's. */
static void commands__forwards_and_back__go_there(void **state)
{
    static const struct { const char *text, *heads; } cases[] = {
        {"", "step 0, scheduled at 0 ns\n"},
        {"n\n", "step 0, scheduled at 0 ns\nstep 0+, ended at 1000 ns\n"},
        {"n\n\nn\np\np\n", "step 0, scheduled at 0 ns\nstep 0+, ended at 1000 ns\nstep 1, scheduled at 1000 ns\nstep 1+, ended at 2000 ns\n"
                            "step 1, scheduled at 1000 ns\nstep 0+, ended at 1000 ns\n"},
        {"p\nq\nn\n", "step 0, scheduled at 0 ns\nThis is the first instant.\n"},
        {"g 2\ng 2+\ng 77\ng\n", "step 0, scheduled at 0 ns\nstep 2, scheduled at 2000 ns\nstep 2+, ended at 3000 ns\nThere is no such step.\n"
                              "Expected a step's number, 7 or 7+.\n"},
        {"r\n", "step 0, scheduled at 0 ns\nstep 1, scheduled at 1000 ns\n"},
        {"x\nn\nX\n", "step 0, scheduled at 0 ns\nstep 1, scheduled at 1000 ns\nstep 1+, ended at 2000 ns\nstep 1, scheduled at 1000 ns\n"},
        {"E\n", "step 0, scheduled at 0 ns\nNone before.\n"},
        {"f b\nf b\nf c\n", "step 0, scheduled at 0 ns\nstep 0+, ended at 1000 ns\nstep 1, scheduled at 1000 ns\nIt has no event behind this one.\n"},
        {"h\n", "step 0, scheduled at 0 ns\nNot a command; ? lists them.\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *heads = commands(*state, cases[i].text);
        check_str_eq(heads, cases[i].heads);
        free(heads);
    }
}

static void commands__next_eviction__block_and_request(void **state)
{
    struct cli_result r;
    const char *text = "e\n";
    const struct cli_input input = {.stdin_bytes = text, .stdin_count = strlen(text)};
    /* One usable block; the second prompt takes it with the first one's content. */
    const char *trace = write_trace(*state, "{\"arrival_ns\": 0, \"prompt_tokens\": 4, \"output_tokens\": 1}\n"
                                            "{\"arrival_ns\": 5000, \"prompt_tokens\": 4, \"output_tokens\": 1}\n");
    cli_run(&r, &input, (const char *const[]){"explain", trace, "--policy", "prefix", "--block-size", "4", "--num-gpu-blocks-override", "2", UNIT, NULL});
    check_str_has(r.out, "* block 1 evicted for request 1: its content is forgotten\n");
    cli_release(&r);
}

/* --- sizes ---------------------------------------------------------------------------------------- */

static size_t width_of(const char *line, const char *end)
{
    size_t width = 0;
    for (; line < end; line++) width += ((unsigned char)*line & 0xc0) != 0x80;
    return width;
}

static void check_size(const char *text, size_t columns, size_t rows)
{
    size_t lines = 0;
    for (const char *line = text, *end; *line; line = end + 1, lines++) {
        end = strchr(line, '\n');
        if (width_of(line, end) > columns) fail_msg("wider than %zu: %.*s", columns, (int)(end - line), line);
    }
    if (lines > rows) fail_msg("%zu lines, expected at most %zu:\n%s", lines, rows, text);
}

#define MANY "gen:requests=60,arrivals=poisson:60,prompt-tokens=lognormal:4.6:0.8@1..600,output-tokens=lognormal:4:0.8@1..200,prefix-tokens=50,content=tokens"

/* One line is left for the prompt. */
static void picture__any_pool_and_screen__fits(void **state)
{
    static const char *const policies[] = {"static", "static-paged", "jemalloc", "dynamic", "prefix", "ideal"};
    static const char *const pools[] = {"2500", "6000", "200000"};
    static const char *const screens[][2] = {{"80", "24"}, {"40", "12"}, {"200", "60"}};
    (void)state;
    setenv("LC_ALL", "C.UTF-8", 1);
    for (size_t p = 0; p < 6; p++) {
        for (size_t i = 0; i < 3; i++) {
            struct cli_result r;
            setenv("COLUMNS", screens[i][0], 1);
            setenv("LINES", screens[i][1], 1);
            CLI(&r, "explain", MANY, "--policy", policies[p], "--pool-tokens", pools[(p + i) % 3], "--at", i ? "40" : "90+");
            check_i64_eq(r.status, 0);
            check_size(r.out, (size_t)atoi(screens[i][0]), (size_t)atoi(screens[i][1]) - 1);
            cli_release(&r);
        }
    }
}

/* --- what is wrong ---------------------------------------------------------------------------------- */

static void explain__bad_input__one_line(void **state)
{
    static const struct { const char *at, *says; } cases[] = {
        {"x", "--at: found 'x', expected a step such as 7, or 7+ for its end"},
        {"7-", "--at: found '7-', expected a step"},
        {"99999999999999999999", "--at: found '99999999999999999999', expected a step"},
        {"3", "--at: found 3, which the run does not come to"},
    };
    struct cli_result r;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CLI(&r, "explain", write_trace(*state, ONE), ONE_OPTIONS, "--at", cases[i].at);
        check_i64_eq(r.status, 2);
        check_str_has(r.err, cases[i].says);
        check_str_eq(r.out, "");
        cli_release(&r);
    }
    CLI(&r, "explain", write_trace(*state, "{\"arrival_ns\": 0, \"prompt_tokens\": 0, \"output_tokens\": 3}\n"), UNIT);
    check_i64_eq(r.status, 3);
    check_str_has(r.err, "no step was made: there is nothing to see");
    cli_release(&r);
}

static void explain__recorded_case__its_blocks(void **state)
{
    struct cli_result r;
    (void)state;
    CLI(&r, "explain", "--case", "tests/golden/vllm-v1/09-eviction-order", "--at", "0");
    check_str_eq(r.err, "");
    check_i64_eq(r.status, 0);
    check_str_has(r.out, "step 0, scheduled at 0 ns; prefix, 8 blocks of 4\n");
    cli_release(&r);
    /* expected.jsonl, the fourth line: c gets 6, 7, 8, 3, and 3 is evicted. A case's clock counts steps of 1 ns. */
    CLI(&r, "explain", "--case", "tests/golden/vllm-v1/09-eviction-order", "--at", "3");
    check_str_has(r.out, "step 3, scheduled at 6 ns; ");
    check_str_has(r.out, "* block 3 evicted for request c: its content is forgotten\n");
    check_str_has(r.out, "C request c: 16 of 16 tokens; blocks 6 7 8 3\n");
    cli_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at__prefix_scheduled__every_slot, setup, teardown),
        cmocka_unit_test_setup_teardown(at__prefix_end_of_the_last_step__cached_and_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(at__utf8_locale__other_signs, setup, teardown),
        cmocka_unit_test_setup_teardown(at__static_with_a_hole__to_scale, setup, teardown),
        cmocka_unit_test_setup_teardown(at__buddy__rounding, setup, teardown),
        cmocka_unit_test_setup_teardown(at__preemption__says_why, setup, teardown),
        cmocka_unit_test_setup_teardown(at__samples__holders_and_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(commands__forwards_and_back__go_there, setup, teardown),
        cmocka_unit_test_setup_teardown(commands__next_eviction__block_and_request, setup, teardown),
        cmocka_unit_test_setup_teardown(picture__any_pool_and_screen__fits, setup, teardown),
        cmocka_unit_test_setup_teardown(explain__bad_input__one_line, setup, teardown),
        cmocka_unit_test_setup_teardown(explain__recorded_case__its_blocks, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
