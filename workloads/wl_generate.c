/* Generators as sources. Three shapes:
 *  - independent requests: nothing is kept, memory is flat;
 *  - a pool of conversations (`sessions`): each request continues one that is drawn from the pool;
 *  - conversations that arrive and go on (`continue`): those under way are kept, ordered by the time
 *    of their next turn.
 *
 * Token-exact content needs no storage: conversation r owns the token numbers r*2^32 and on, and the
 * token at its position p is number r*2^32 + p, except that the first positions belong to the
 * shared prefix. Regions 0 .. groups-1 are the prefixes themselves. */
#include "workloads/wl_source_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "workloads/wl_genspec.h"

static const double s_ns = 1e9;

struct session {
    uint64_t number;  /* its name */
    uint64_t region;  /* of its token numbers */
    uint64_t tokens;  /* so far: what the next prompt repeats */
    uint64_t group;   /* of its prefix */
    uint32_t turns;   /* already generated */
    struct wl_ids ids; /* of the full blocks of its last prompt, under WL_CONTENT_IDS */
};

/* A turn to come. */
struct due {
    uint64_t time_ns;
    uint64_t order;   /* ties: first come first served */
    struct session *session;
};

struct generator {
    struct wl_source source;
    struct wl_genspec spec;
    uint64_t seed;
    struct wl_rng arrivals, prompt, output, content, turns, think, samples, max_tokens, aborts;
    struct wl_zipf prefix_zipf, session_zipf;
    uint64_t made;
    uint64_t clock_ns;      /* of the arrival process */
    double on_left_s;
    uint64_t next_region, next_id, next_session, next_order;
    struct session *pool;   /* spec.sessions of them, or NULL */
    struct session single;  /* for independent requests */
    struct due *due;        /* binary heap */
    size_t due_count, due_capacity;
    uint64_t next_start_ns; /* of the next conversation, under `continue` */
    struct wl_draft draft;
};

/* --- the heap of turns to come --------------------------------------------------------------- */

static bool earlier(const struct due *a, const struct due *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static int due_push(struct generator *gen, uint64_t time_ns, struct session *session)
{
    void *due = gen->due;
    int rc = wl_array_reserve(&due, &gen->due_capacity, sizeof *gen->due, gen->due_count + 1);
    gen->due = due;
    if (rc != 0)
        return -1;
    struct due item = { time_ns, gen->next_order++, session };
    size_t at = gen->due_count++;
    while (at > 0 && earlier(&item, &gen->due[(at - 1) / 2])) {
        gen->due[at] = gen->due[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    gen->due[at] = item;
    return 0;
}

static struct due due_pop(struct generator *gen)
{
    struct due first = gen->due[0];
    struct due item = gen->due[--gen->due_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= gen->due_count)
            break;
        if (child + 1 < gen->due_count && earlier(&gen->due[child + 1], &gen->due[child]))
            child++;
        if (!earlier(&gen->due[child], &item))
            break;
        gen->due[at] = gen->due[child];
        at = child;
    }
    gen->due[at] = item;
    return first;
}

/* --- arrivals -------------------------------------------------------------------------------- */

/* Poisson within exponential on-periods; what is left of a gap is carried over the off-period,
 * which the exponential's lack of memory allows. */
static double onoff_gap(struct generator *gen)
{
    const struct wl_genspec *spec = &gen->spec;
    double gap = wl_rng_exponential(&gen->arrivals) / spec->rate_per_s;
    double passed = 0;
    while (gap > gen->on_left_s) {
        gap -= gen->on_left_s;
        passed += gen->on_left_s + spec->off_s * wl_rng_exponential(&gen->arrivals);
        gen->on_left_s = spec->on_s * wl_rng_exponential(&gen->arrivals);
    }
    gen->on_left_s -= gap;
    return passed + gap;
}

static double arrival_gap_s(struct generator *gen)
{
    const struct wl_genspec *spec = &gen->spec;
    double shape = 0;
    switch (spec->arrivals) {
    case WL_ARRIVALS_NONE:
        return 0;
    case WL_ARRIVALS_POISSON:
        return wl_rng_exponential(&gen->arrivals) / spec->rate_per_s;
    case WL_ARRIVALS_CONSTANT:
        return 1 / spec->rate_per_s;
    case WL_ARRIVALS_ONOFF:
        return onoff_gap(gen);
    case WL_ARRIVALS_GAMMA:
        break;
    }
    /* A gamma variable has mean shape * scale and coefficient of variation 1 / sqrt(shape). */
    shape = 1 / (spec->cv * spec->cv);
    return wl_rng_gamma(&gen->arrivals, shape) / (shape * spec->rate_per_s);
}

static int add_seconds(const struct generator *gen, uint64_t *time_ns, double seconds,
                       struct err *err)
{
    double ns = seconds * s_ns;
    if (!(ns < (double)(WL_TIME_NS_MAX - *time_ns)))
        return err_set(err, ERR_USAGE, "%s: found an arrival beyond 2^62 ns, expected a higher rate "
                       "or fewer requests", gen->source.name);
    *time_ns += (uint64_t)(ns + 0.5);
    return 0;
}

static int next_start(struct generator *gen, uint64_t *time_ns, struct err *err)
{
    if (add_seconds(gen, &gen->clock_ns, arrival_gap_s(gen), err) != 0)
        return -1;
    *time_ns = gen->clock_ns;
    return 0;
}

static uint64_t round_to_tick(const struct generator *gen, uint64_t time_ns)
{
    uint64_t tick_ns = (uint64_t)(gen->spec.tick_s * s_ns + 0.5);
    return tick_ns > 0 ? time_ns - time_ns % tick_ns : time_ns;
}

/* --- conversations --------------------------------------------------------------------------- */

/* Empty again, with content of its own. */
static void session_restart(struct generator *gen, struct session *session)
{
    session->tokens = 0;
    session->turns = 0;
    session->ids.count = 0;
    session->region = gen->next_region++;
    session->group = 0;
    if (gen->spec.prefix_groups > 1)
        session->group = wl_zipf_draw(&gen->prefix_zipf, &gen->content);
}

static struct session *session_create(struct generator *gen)
{
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->number = gen->next_session++;
    session_restart(gen, session);
    return session;
}

static void session_destroy(struct session *session)
{
    if (session == NULL)
        return;
    free(session->ids.items);
    free(session);
}

/* A branch keeps some of the full blocks of the old prompt, all numbers below it equally likely. */
static void cut_history(struct generator *gen, struct session *session)
{
    uint64_t block = gen->spec.content == WL_CONTENT_IDS ? gen->spec.id_tokens : 1;
    uint64_t blocks = session->tokens / block;
    if (session->ids.count > 0 && session->ids.count < blocks)
        blocks = session->ids.count;
    if (blocks == 0)
        return;
    uint64_t kept = wl_rng_below(&gen->turns, blocks);
    session->tokens = kept * block;
    if (session->ids.count > kept)
        session->ids.count = kept;
}

static uint64_t first_prompt_tokens(struct generator *gen)
{
    uint64_t prefix = gen->spec.prefix_within ? 0 : gen->spec.prefix_tokens;
    return prefix + wl_dist_draw_count(&gen->spec.prompt, &gen->prompt);
}

static uint64_t later_prompt_tokens(struct generator *gen, struct session *session)
{
    const struct wl_genspec *spec = &gen->spec;
    const struct wl_dist *fresh = spec->has_turn_prompt ? &spec->turn_prompt : &spec->prompt;
    if (spec->branch_ratio > 0 && wl_rng_unit(&gen->turns) < spec->branch_ratio) {
        cut_history(gen, session);
        if (spec->has_branch_prompt)
            fresh = &spec->branch_prompt;
    }
    return session->tokens + wl_dist_draw_count(fresh, &gen->prompt);
}

/* Draws both lengths until they fit: the truncated distribution, as far as it can be reached. */
static void redraw_lengths(struct generator *gen, uint64_t limit, uint64_t *prompt, uint64_t *output)
{
    for (int tries = 0; tries < 10000 && (*output > limit || *prompt > limit - *output); tries++) {
        *output = wl_dist_draw_count(&gen->spec.output, &gen->output);
        *prompt = first_prompt_tokens(gen);
    }
}

/* Lengths of the next turn. A conversation that would pass the limit starts afresh; one turn that
 * would pass it alone is cut. */
static void draw_lengths(struct generator *gen, struct session *session)
{
    struct wl_request *request = &gen->draft.request;
    uint64_t limit = gen->spec.context_tokens_max != 0 ? gen->spec.context_tokens_max : WL_TOKENS_MAX;
    uint64_t output = wl_dist_draw_count(&gen->spec.output, &gen->output);
    uint64_t prompt = session->turns == 0 ? first_prompt_tokens(gen)
                                          : later_prompt_tokens(gen, session);
    if (session->turns == 0 && gen->spec.redraw_overlong)
        redraw_lengths(gen, limit, &prompt, &output);
    if (output > limit - 1)
        output = limit - 1;
    if (session->turns > 0 && prompt + output > limit) {
        uint64_t fresh = prompt - session->tokens;
        session_restart(gen, session);
        prompt = (gen->spec.prefix_within ? 0 : gen->spec.prefix_tokens) + fresh;
    }
    if (prompt > limit - output)
        prompt = limit - output;
    request->prompt_tokens = prompt > 0 ? prompt : 1; /* engines refuse an empty prompt */
    request->output_tokens = output;
}

/* --- content --------------------------------------------------------------------------------- */

static int add_tokens(struct generator *gen, struct session *session, bool continues)
{
    struct wl_draft *draft = &gen->draft;
    uint64_t prompt = draft->request.prompt_tokens;
    uint64_t prefix = gen->spec.prefix_tokens < prompt ? gen->spec.prefix_tokens : prompt;
    uint64_t base = session->region << 32;
    draft->request.has_content = true;
    if (wl_spans_add(&draft->prompt, 0, session->group << 32, prefix) != 0 ||
        wl_spans_add(&draft->prompt, 0, base + prefix, prompt - prefix) != 0)
        return -1;
    /* An output that nobody will repeat is left out: unique is what the reader makes of it. */
    if (!continues || gen->spec.history_is_prompt)
        return 0;
    return wl_spans_add(&draft->output, 0, base + prompt, draft->request.output_tokens);
}

static int add_ids(struct generator *gen, struct session *session)
{
    struct wl_draft *draft = &gen->draft;
    struct wl_request *request = &draft->request;
    uint64_t block = gen->spec.id_tokens;
    uint64_t full = request->prompt_tokens / block;
    uint64_t all = full + (request->prompt_tokens % block != 0);
    uint64_t prefix_blocks = gen->spec.prefix_tokens / block;
    request->trace_block_tokens = gen->spec.id_tokens;
    session->ids.count = session->ids.count < full ? session->ids.count : full;
    for (uint64_t i = 0; i < all; i++) {
        uint64_t id;
        if (i < session->ids.count)
            id = session->ids.items[i];
        else if (i < full && i < prefix_blocks)
            id = session->group * prefix_blocks + i;
        else
            id = gen->next_id++;
        if (wl_ids_add(&draft->hash_ids, id) != 0 ||
            (i < full && i >= session->ids.count && wl_ids_add(&session->ids, id) != 0))
            return -1;
    }
    return wl_draft_hash_content(draft);
}

static int add_content(struct generator *gen, struct session *session, bool continues)
{
    switch (gen->spec.content) {
    case WL_CONTENT_TOKENS:
        return add_tokens(gen, session, continues);
    case WL_CONTENT_IDS:
        return add_ids(gen, session);
    default:
        return 0;
    }
}

/* --- one request ----------------------------------------------------------------------------- */

static void draw_extras(struct generator *gen)
{
    const struct wl_genspec *spec = &gen->spec;
    struct wl_request *request = &gen->draft.request;
    uint64_t samples = wl_dist_draw_count(&spec->samples, &gen->samples);
    samples = samples < 1 ? 1 : samples > WL_SAMPLES_MAX ? WL_SAMPLES_MAX : samples;
    request->samples = (uint32_t)samples;
    if (spec->has_max_tokens)
        request->max_tokens = wl_dist_draw_count(&spec->max_tokens, &gen->max_tokens);
    if (spec->abort_ratio > 0) {
        /* Both are drawn each time, so that another ratio leaves the delays as they are. */
        double chance = wl_rng_unit(&gen->aborts);
        double delay_s = wl_dist_draw(&spec->abort_delay_s, &gen->aborts);
        if (chance < spec->abort_ratio)
            request->abort_ns = request->arrival_ns + (uint64_t)(delay_s * s_ns + 0.5);
    }
}

static int set_session_name(struct generator *gen, const struct session *session)
{
    char name[32];
    int length = snprintf(name, sizeof name, "s%" PRIu64, session->number);
    gen->draft.session_at = gen->draft.text.count;
    return wl_text_append(&gen->draft.text, name, (size_t)length + 1);
}

/* The next turn of a conversation, at this time. */
static int make_request(struct generator *gen, struct session *session, uint64_t time_ns,
                        bool is_conversation, struct err *err)
{
    struct wl_draft *draft = &gen->draft;
    wl_draft_clear(draft);
    draft->serial = gen->made;
    draft->has_arrival = gen->spec.arrivals != WL_ARRIVALS_NONE;
    draft->request.arrival_ns = round_to_tick(gen, time_ns);
    draw_lengths(gen, session);
    draw_extras(gen);
    if (add_content(gen, session, is_conversation) != 0 ||
        (is_conversation && set_session_name(gen, session) != 0))
        return err_set(err, ERR_FAILED, "%s: out of memory", gen->source.name);
    session->tokens = draft->request.prompt_tokens;
    if (!gen->spec.history_is_prompt)
        session->tokens += draft->request.output_tokens;
    session->turns++;
    gen->made++;
    return 0;
}

static int next_of_pool(struct generator *gen, struct err *err)
{
    uint64_t time_ns;
    if (next_start(gen, &time_ns, err) != 0)
        return -1;
    struct session *session = &gen->pool[wl_zipf_draw(&gen->session_zipf, &gen->content)];
    if (session->turns == 0)
        session_restart(gen, session);
    return make_request(gen, session, time_ns, true, err);
}

/* After a turn: schedules the next one, or ends the conversation. */
static int go_on(struct generator *gen, struct session *session, uint64_t time_ns, uint32_t turn,
                 struct err *err)
{
    const struct wl_genspec *spec = &gen->spec;
    size_t i = turn < spec->continue_count ? turn : spec->continue_count - 1;
    if (wl_rng_unit(&gen->turns) >= spec->continue_ratio[i]) {
        session_destroy(session);
        return 0;
    }
    double think_s = wl_dist_draw(&spec->think_s, &gen->think);
    if (spec->think_scale_count > 0)
        think_s *= spec->think_scale[turn < spec->think_scale_count ? turn : spec->think_scale_count - 1];
    int rc = add_seconds(gen, &time_ns, think_s, err);
    if (rc == 0 && due_push(gen, time_ns, session) != 0)
        rc = err_set(err, ERR_FAILED, "%s: out of memory", gen->source.name);
    if (rc != 0)
        session_destroy(session);
    return rc;
}

static int next_turn(struct generator *gen, struct err *err)
{
    struct session *session;
    uint64_t time_ns;
    if (gen->due_count > 0 && gen->due[0].time_ns <= gen->next_start_ns) {
        struct due due = due_pop(gen);
        session = due.session;
        time_ns = due.time_ns;
    } else {
        time_ns = gen->next_start_ns;
        if (next_start(gen, &gen->next_start_ns, err) != 0)
            return -1;
        session = session_create(gen);
        if (session == NULL)
            return err_set(err, ERR_FAILED, "%s: out of memory", gen->source.name);
    }
    uint32_t turn = session->turns;
    if (make_request(gen, session, time_ns, true, err) != 0) {
        session_destroy(session);
        return -1;
    }
    return go_on(gen, session, time_ns, turn, err);
}

static int next_single(struct generator *gen, struct err *err)
{
    uint64_t time_ns;
    if (next_start(gen, &time_ns, err) != 0)
        return -1;
    session_restart(gen, &gen->single);
    return make_request(gen, &gen->single, time_ns, false, err);
}

static int generator_next(struct wl_source *source, struct wl_draft **draft, struct err *err)
{
    struct generator *gen = (struct generator *)source;
    if (gen->made == gen->spec.requests)
        return 0;
    int rc;
    if (gen->pool != NULL)
        rc = next_of_pool(gen, err);
    else if (gen->spec.continue_count > 0)
        rc = next_turn(gen, err);
    else
        rc = next_single(gen, err);
    if (rc != 0)
        return -1;
    wl_draft_finish(&gen->draft);
    *draft = &gen->draft;
    return 1;
}

/* --- life ------------------------------------------------------------------------------------ */

static void forget_sessions(struct generator *gen)
{
    while (gen->due_count > 0)
        session_destroy(gen->due[--gen->due_count].session);
    for (uint64_t i = 0; gen->pool != NULL && i < gen->spec.sessions; i++) {
        gen->pool[i].turns = 0;
        gen->pool[i].number = i;
    }
}

static void seed_streams(struct generator *gen)
{
    struct { struct wl_rng *rng; uint64_t stream; } const streams[] = {
        { &gen->arrivals, WL_STREAM_ARRIVALS }, { &gen->prompt, WL_STREAM_PROMPT },
        { &gen->output, WL_STREAM_OUTPUT },     { &gen->content, WL_STREAM_CONTENT },
        { &gen->turns, WL_STREAM_TURNS },       { &gen->think, WL_STREAM_THINK },
        { &gen->samples, WL_STREAM_SAMPLES },   { &gen->max_tokens, WL_STREAM_MAX_TOKENS },
        { &gen->aborts, WL_STREAM_ABORTS },
    };
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
        wl_rng_init(streams[i].rng, gen->seed, streams[i].stream);
}

static int generator_rewind(struct wl_source *source, struct err *err)
{
    struct generator *gen = (struct generator *)source;
    const struct wl_genspec *spec = &gen->spec;
    forget_sessions(gen);
    seed_streams(gen);
    gen->made = 0;
    gen->clock_ns = 0;
    gen->on_left_s = 0;
    gen->next_region = spec->prefix_groups;
    gen->next_id = spec->content == WL_CONTENT_IDS
                       ? spec->prefix_groups * (spec->prefix_tokens / spec->id_tokens) : 0;
    gen->next_session = 0;
    gen->next_order = 0;
    if (spec->continue_count > 0)
        return next_start(gen, &gen->next_start_ns, err);
    return 0;
}

static void generator_release(struct wl_source *source)
{
    struct generator *gen = (struct generator *)source;
    forget_sessions(gen);
    for (uint64_t i = 0; gen->pool != NULL && i < gen->spec.sessions; i++)
        free(gen->pool[i].ids.items);
    free(gen->pool);
    free(gen->due);
    free(gen->single.ids.items);
    wl_zipf_release(&gen->prefix_zipf);
    wl_zipf_release(&gen->session_zipf);
    wl_draft_release(&gen->draft);
    wl_genspec_release(&gen->spec);
}

static const struct wl_source_ops generator_ops = {
    generator_next, generator_rewind, generator_release,
};

static int prepare(struct generator *gen, struct err *err)
{
    const struct wl_genspec *spec = &gen->spec;
    if (spec->sessions > 0) {
        gen->pool = calloc(spec->sessions, sizeof *gen->pool);
        if (gen->pool == NULL ||
            wl_zipf_init(&gen->session_zipf, spec->sessions, spec->session_zipf) != 0)
            return err_set(err, ERR_FAILED, "%s: out of memory", gen->source.name);
    }
    if (spec->prefix_groups > 1 &&
        wl_zipf_init(&gen->prefix_zipf, spec->prefix_groups, spec->prefix_zipf) != 0)
        return err_set(err, ERR_FAILED, "%s: out of memory", gen->source.name);
    return generator_rewind(&gen->source, err);
}

int wl_generator_open(const char *name, const char *spec, const struct wl_options *options,
                      uint64_t seed, struct wl_source **out, struct err *err)
{
    struct generator *gen = calloc(1, sizeof *gen);
    if (gen == NULL)
        return err_set(err, ERR_FAILED, "%s: out of memory", name);
    gen->seed = seed;
    gen->source.can_rewind = true;
    if (wl_source_init(&gen->source, &generator_ops, name, "generated", options, err) != 0 ||
        wl_genspec_parse(&gen->spec, spec, err) != 0 || prepare(gen, err) != 0) {
        wl_close(&gen->source);
        return -1;
    }
    *out = &gen->source;
    return 0;
}
