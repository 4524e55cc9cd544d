/* Jobs on several threads. */
#include "tests/check.h"

#include <string.h>
#include <unistd.h>

#include "sim/workers.h"

#define JOBS 100

struct jobs {
    size_t next, runs[JOBS], done[JOBS];
    size_t fails_late, fails_soon, load_fails;
};

static int next_job(void *context, size_t *job, struct err *err)
{
    struct jobs *jobs = context;
    if (jobs->next == jobs->load_fails) return err_set(err, ERR_INPUT, "load %zu", jobs->next);
    if (jobs->next == JOBS) return 0;
    *job = jobs->next++;
    return 1;
}

static int run_job(void *context, size_t job, struct err *err)
{
    struct jobs *jobs = context;
    jobs->runs[job]++;
    if (job == jobs->fails_late) {
        usleep(20000);
        return err_set(err, ERR_FAILED, "job %zu", job);
    }
    if (job >= jobs->fails_soon) return err_set(err, ERR_FAILED, "job %zu", job);
    return 0;
}

static int end_job(void *context, size_t job, struct err *err)
{
    struct jobs *jobs = context;
    (void)err;
    jobs->done[job]++;
    return 0;
}

static void run__any_number_of_threads__each_job_once(void **state)
{
    (void)state;
    static const unsigned threads[] = {0, 1, 3, 16};
    for (size_t t = 0; t < 4; t++) {
        struct jobs jobs = {.fails_late = JOBS, .fails_soon = JOBS, .load_fails = SIZE_MAX};
        const struct work work = {.context = &jobs, .next = next_job, .run = run_job, .done = end_job};
        struct err err = {0};
        assert_int_equal(workers_run(&work, threads[t], &err), 0);
        for (size_t i = 0; i < JOBS; i++) {
            check_u64_eq(jobs.runs[i], 1);
            check_u64_eq(jobs.done[i], 1);
        }
    }
}

/* Job 11 fails 20 ms after those from 13 on: it is told all the same, and none of them ended well. */
static void run__several_fail__the_first_in_order_is_told(void **state)
{
    (void)state;
    static const unsigned threads[] = {1, 2, 4, 16};
    for (size_t t = 0; t < 4; t++) {
        struct jobs jobs = {.fails_late = 11, .fails_soon = 13, .load_fails = SIZE_MAX};
        const struct work work = {.context = &jobs, .next = next_job, .run = run_job, .done = end_job};
        struct err err = {0};
        assert_int_equal(workers_run(&work, threads[t], &err), -1);
        check_str_eq(err.text, "job 11");
        for (size_t i = 0; i < 11; i++) check_u64_eq(jobs.done[i], 1);
        check_u64_eq(jobs.done[11], 0);
        check_u64_eq(jobs.runs[40], 0);
    }
}

static void run__a_job_that_cannot_be_had__its_error(void **state)
{
    (void)state;
    struct jobs jobs = {.fails_late = 11, .fails_soon = JOBS, .load_fails = 12};
    const struct work work = {.context = &jobs, .next = next_job, .run = run_job};
    struct err err = {0};
    assert_int_equal(workers_run(&work, 4, &err), -1);
    check_str_eq(err.text, "job 11");
    struct jobs others = {.fails_late = JOBS, .fails_soon = JOBS, .load_fails = 12};
    const struct work again = {.context = &others, .next = next_job, .run = run_job};
    struct err load_err = {0};
    assert_int_equal(workers_run(&again, 4, &load_err), -1);
    check_str_eq(load_err.text, "load 12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__any_number_of_threads__each_job_once),
        cmocka_unit_test(run__several_fail__the_first_in_order_is_told),
        cmocka_unit_test(run__a_job_that_cannot_be_had__its_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
