#include "sim/edge_study.h"

#include <stdlib.h>
#include <string.h>

#include "sim/edge_internal.h"
#include "sim/edge_options.h"
#include "sim/plan.h"
#include "sim/report.h"
#include "sim/simulation.h"
#include "sim/sizes.h"
#include "sim/workers.h"

#define UTILIZATION "gpu-memory-utilization"
#define ROWS_MAX 100000u

/* --- rows ------------------------------------------------------------------------------------ */

int edge_rows_make(const struct optset *set, struct edge_row **out, size_t *count, struct err *err)
{
    uint64_t cells = optset_cells(set), each = optset_given(set, UTILIZATION) ? 1 : 10;
    if (cells > ROWS_MAX / each) return err_set(err, ERR_USAGE, "more than %u rows, expected shorter lists", ROWS_MAX);
    struct edge_row *rows = calloc(cells * each, sizeof *rows);
    *out = rows;
    *count = 0;
    if (!rows) return err_set(err, ERR_FAILED, "out of memory");
    for (uint64_t i = 0; i < cells * each; i++) {
        struct edge_row *row = &rows[(*count)++];
        result_init(&row->result);
        row->cell = optset_cell(set, i / each);
        if (!row->cell) return err_set(err, ERR_FAILED, "out of memory");
        if (each == 1) continue;
        snprintf(row->utilization, sizeof row->utilization, "0.9%u", (unsigned)(i % each));
        if (optset_put(row->cell, UTILIZATION, row->utilization, err)) return -1;
    }
    return 0;
}

void edge_rows_release(struct edge_row *rows, size_t count)
{
    for (size_t i = 0; rows && i < count; i++) {
        result_release(&rows[i].result);
        optset_destroy(rows[i].cell);
    }
    free(rows);
}

/* --- one row --------------------------------------------------------------------------------- */

/* Whether the server starts, as `plan` has it; the verdict when it does not. */
static int read_verdict(const struct edge_row *row, struct plan *plan, struct plan_input *in, struct err *err)
{
    struct options o;
    struct optset *set = optset_as(row->cell, FOR_PLAN, NULL, NULL, err);
    int status = !set || optset_finish(set, err) || options_resolve(set, &o, err) || plan_input_read(in, set, &o, err) ? -1 : 0;
    if (status == 0) plan_compute(plan, in);
    optset_destroy(set);
    return status;
}

static bool is_input(void *context, const struct option_spec *spec)
{
    (void)context;
    return spec->section != OPT_OUTPUT && strcmp(spec->name, "fail-if") != 0;
}

static struct optset *run_set(const struct edge_row *row, struct err *err)
{
    struct optset *set = optset_as(row->cell, FOR_RUN, is_input, NULL, err);
    if (set && (optset_put(set, "device-model", "budget", err) || optset_finish(set, err))) {
        optset_destroy(set);
        return NULL;
    }
    return set;
}

/* The largest step of the trace on a device that never runs out. */
static int simulate_peak(const struct optset *set, const struct options *o, uint64_t *peak, struct err *err)
{
    struct wl_options how;
    struct wl_source *source = NULL;
    struct trace_facts facts;
    struct engine_config config;
    struct engine *engine = NULL;
    options_wl(o, &how);
    int status = wl_open(o->trace, &how, o->seed, &source, err);
    if (status == 0) status = trace_facts_read(&facts, source, o, err);
    if (status == 0) status = simulation_configure(&config, set, o, &facts, err);
    if (status == 0) {
        config.edge.device_bytes = (uint64_t)1 << 60;
        config.edge.buffer_count = 0;
        engine = engine_create(&config, err);
        status = engine ? engine_run(engine, source, err) : -1;
    }
    if (status == 0) *peak = edge_totals(engine->edge)->activation_peak_bytes;
    engine_destroy(engine);
    wl_close(source);
    return status;
}

static int read_spreads(struct edge_draws *d, const struct optset *cell, struct err *err)
{
    static const char *const names[] = {"activation-spread", "late-spread", "residue-spread"};
    struct edge_spread *spreads[] = {&d->activation, &d->late, &d->residue};
    for (size_t i = 0; i < 3; i++) {
        if (edge_spread_parse(spreads[i], optset_text(cell, names[i]), i > 0, err) == 0) continue;
        err_prefix(err, "--%s", names[i]);
        return -1;
    }
    return option_parse(option_find(FOR_EDGE, "draws"), optset_text(cell, "draws"), &d->draws, err);
}

static int fill_draws(const struct edge_row *row, struct edge_draws *d, struct err *err)
{
    struct options o;
    struct edge_config edge;
    struct optset *set = run_set(row, err);
    int status = !set || options_resolve(set, &o, err) || options_pool_bytes(&o, &d->pool_bytes, err) ||
                         edge_from_options(&edge, set, &o, err) || read_spreads(d, row->cell, err)
                     ? -1
                     : 0;
    if (status == 0) {
        u128 fixed = (u128)edge.context_bytes + edge.weights_bytes + edge.residue_bytes + edge.graph_bytes + d->pool_bytes;
        uint64_t tokens = o.max_num_batched_tokens, seqs = o.max_num_seqs < tokens ? o.max_num_seqs : tokens;
        d->seed = o.seed;
        d->room_bytes = fixed > edge.device_bytes ? 0 : edge.device_bytes - (uint64_t)fixed;
        for (uint32_t i = 0; i < edge.buffer_count; i++) d->fixed_bytes += edge.buffers[i].bytes;
        d->peak_bytes = edge_activation_bytes(&edge, tokens, seqs);
        if (o.trace) status = simulate_peak(set, &o, &d->peak_bytes, err);
    }
    optset_destroy(set);
    return status;
}

static void put_chance(struct result *r, const struct edge_draws *d)
{
    struct edge_chance chance;
    edge_draw(&chance, d);
    result_u64(r, "pool_bytes", d->pool_bytes);
    result_u64(r, "room_bytes", d->room_bytes);
    result_u64(r, "activation_peak_bytes", d->peak_bytes);
    result_u64(r, "late_buffer_bytes", d->fixed_bytes);
    result_u64(r, "draws", chance.draws);
    result_u64(r, "ooms", chance.ooms);
    result_f64(r, "oom_probability", chance.probability);
    result_f64(r, "oom_probability_low", chance.low);
    result_f64(r, "oom_probability_high", chance.high);
    result_ratio(r, "elastic_oom_probability", chance.elastic_ooms, chance.draws);
    result_f64(r, "elastic_lent_mean_bytes", chance.lent_mean_bytes);
}

static void put_nothing(struct result *r)
{
    static const char *const keys[] = {"pool_bytes", "room_bytes", "activation_peak_bytes", "late_buffer_bytes", "draws", "ooms",
                                       "oom_probability", "oom_probability_low", "oom_probability_high",
                                       "elastic_oom_probability", "elastic_lent_mean_bytes"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) result_null(r, keys[i]);
}

static int run_row(struct edge_row *row, struct err *err)
{
    struct plan *plan = malloc(sizeof *plan);
    struct plan_input *in = malloc(sizeof *in);
    struct edge_draws draws = {0};
    int status = plan && in ? read_verdict(row, plan, in, err) : err_set(err, ERR_FAILED, "out of memory");
    if (status == 0 && plan->gpu_memory == PLAN_UNKNOWN) {
        status = err_set(err, ERR_USAGE, "edge: found no device, expected --gpu or --gpu-memory");
    }
    if (status == 0) {
        bool starts = plan->starts || plan->verdict[0] == '\0';
        double utilization = 0;
        size_parse_ratio(optset_text(row->cell, UTILIZATION), &utilization);
        result_f64(&row->result, "gpu_memory_utilization", utilization);
        result_text(&row->result, "verdict", starts ? "starts" : plan->verdict);
        if (starts && (status = fill_draws(row, &draws, err)) == 0) put_chance(&row->result, &draws);
        if (!starts) put_nothing(&row->result);
        report_options(&row->result, row->cell);
    }
    free(in);
    free(plan);
    if (status == 0 && row->result.out_of_memory) status = err_set(err, ERR_FAILED, "out of memory");
    return status;
}

/* --- all of them ------------------------------------------------------------------------------ */

struct rows {
    struct edge_row *rows;
    size_t count, next;
};

static int next_row(void *context, size_t *index, struct err *err)
{
    struct rows *r = context;
    (void)err;
    if (r->next == r->count) return 0;
    *index = r->next++;
    return 1;
}

static int run_at(void *context, size_t index, struct err *err)
{
    struct rows *r = context;
    return run_row(&r->rows[index], err);
}

int edge_rows_run(struct edge_row *rows, size_t count, unsigned threads, struct err *err)
{
    struct rows all = {.rows = rows, .count = count};
    const struct work work = {.context = &all, .next = next_row, .run = run_at};
    return workers_run(&work, threads, err);
}
