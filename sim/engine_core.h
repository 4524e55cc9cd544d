/* Inside of the engine, for its own files and for schedulers. */
#ifndef PAGESIM_ENGINE_CORE_H
#define PAGESIM_ENGINE_CORE_H

#include "sim/digest.h"
#include "sim/edge.h"
#include "sim/engine.h"
#include "sim/engine_park.h"
#include "sim/future.h"
#include "sim/id_index.h"
#include "sim/scheduler.h"
#include "sim/shared_prefix.h"
#include "sim/turns.h"

enum call_outcome { CALL_ADMITTED, CALL_EXTENDED, CALL_PREEMPTED, CALL_REFUSED };
enum request_state { REQUEST_WAITING, REQUEST_RUNNING, REQUEST_SWAPPED, REQUEST_GONE };

/* What is remembered of a request's refusals; apart from it, as most have none. */
struct refusal_record {
    struct sim_request *request;
    bool counted; /* among the requests with a refusal */
    struct episode episode;
    struct refused_before { /* the last refused admission, to know an equal one without asking */
        uint64_t pool_version; /* 0: none */
        uint64_t wanted_tokens, new_tokens, hit_tokens;
        struct refusal_facts facts;
    } before;
};

/* A request between its arrival and its end. Hot fields first. */
struct sim_request {
    struct sim_request *prev, *next; /* in its queue */
    uint64_t computed;   /* tokens of each filled sequence whose KV is there */
    uint64_t filled;     /* the same plus what the present step computes */
    uint64_t outputs;    /* output tokens so far, of each sample */
    uint64_t keyed_tokens; /* cached content: blocks below this may get keys */
    uint64_t prompt_tokens, output_tokens; /* L; O after all cuts */
    enum request_state state;
    bool forked;         /* its samples have their own sequences filled */
    bool written_since_fork; /* ... and own blocks for what they write */
    bool parked, due;    /* engine_park.h */
    uint32_t park_slot;  /* place in the calendar, while parked */
    struct sim_request *park_prev, *park_next; /* in a list of the calendar */
    uint64_t park_due;   /* step under which it stands there */
    uint64_t park_step;  /* decode step up to which its counters go, while parked */
    uint64_t admission_number; /* orders the running list */
    uint64_t taken_units;      /* since its admission */
    uint64_t host_units;       /* in host memory, while swapped */
    uint64_t promised_units;   /* what a reserving scheduler still keeps back for it */
    bool ever_admitted, in_window;
    uint32_t preemptions;      /* so far, of those that are computed again */
    kv_seq *seqs;        /* kv.samples of them while it runs */
    kv_seq one_seq;      /* what seqs points to for one sample */
    uint64_t **keys;     /* per sample: content keys of its blocks; NULL: none yet */
    uint64_t key_blocks;
    struct account account;
    struct kv_request kv;

    uint64_t index;
    int64_t priority;
    uint64_t arrival_ns, abort_ns, first_token_ns;
    uint64_t solitary_outputs; /* outputs at its last refusal while it ran alone, plus 1; 0: none */
    struct refusal_record *refusal; /* NULL: never refused anything */
    uint64_t slot_episode_begin; /* waits for a sequence slot since, plus 1; 0: not */

    bool has_content;
    struct wl_span *spans;     /* prompt, then known output */
    size_t prompt_spans, span_count;
    uint64_t span_tokens;
    struct wl_span *final_spans; /* cache_output trace: the content at the end, or NULL */
    size_t final_span_count;
    uint64_t final_span_tokens;
    bool announced;            /* among the first waiting ones, whose keys the policy knows */
    uint64_t announced_blocks;
    bool cursor_open;
    struct shared_cursor cursor, final_cursor;
    char *id;

    struct {                    /* of a plug-in's scheduler (scheduler_calls.c) */
        uint64_t pass;          /* the last in which it was scheduled, preempted or refused */
        enum call_outcome outcome; /* then, the last */
        uint64_t refused_tokens, refused_version; /* then: of the ask, of the pool */
        uint64_t furthest;      /* most tokens computed so far, before preemptions too */
    } calls;
};

struct request_list {
    struct sim_request *head, *tail;
    uint64_t count;
};
void request_list_append(struct request_list *list, struct sim_request *request);
void request_list_push_front(struct request_list *list, struct sim_request *request);
/* after NULL: at the front. */
void request_list_insert_after(struct request_list *list, struct sim_request *after,
                               struct sim_request *request);
void request_list_remove(struct request_list *list, struct sim_request *request);

struct request_array {
    struct sim_request **items;
    size_t count, capacity;
};

struct key_array {
    uint64_t *items;
    size_t count, capacity;
};

/* What a look-up found of a request: leading blocks on the device, behind them blocks in the host tier. */
struct engine_hit {
    struct kv_hit device;
    uint64_t host_blocks;
    uint64_t tokens; /* of both */
};

/* The head of the waiting queue, as policies with queue_requests are told of it (engine_queue.c). */
struct queue_window {
    uint64_t depth;           /* most requests that are announced; 0: nobody wants to know */
    struct sim_request *last; /* of those announced, which are the first of the queue */
    uint64_t count;
    struct id_index index;    /* key → number */
    uint32_t *requests;       /* [room] by number: announced requests that have the key */
    size_t room;
    uint64_t live;            /* keys that some have */
    uint32_t *numbers;        /* [numbers_room] scratch */
    size_t numbers_room;
};

/* The pass of a plug-in's scheduler (scheduler_calls.c). */
struct scheduler_calls {
    void *state; /* the plug-in's */
    bool inside; /* a pass is under way */
    uint64_t pass; /* its number, from 1 */
    uint64_t budget_tokens;
    struct sim_request *looked_up; /* last in this pass, or NULL */
    struct engine_hit hit;         /* its, when the pool was at this version */
    uint64_t hit_version;
    uint64_t barren_passes; /* in a row, that computed what had been computed before */
};

struct engine {
    struct engine_config config;
    struct kv_policy *policy;
    struct accounting accounting;
    struct edge *edge; /* NULL: the pool alone is simulated */
    struct refusals refusals;
    struct engine_stats stats;
    struct shared_prefix *shared; /* NULL unless the policy caches */
    bool caches;
    struct turns turns; /* of policies with tells_kinds */
    struct future future; /* of policies that foresee */

    uint64_t now;
    struct park park;
    uint64_t admissions;
    uint64_t pool_version;  /* changes with every change of the pool; from 1 on */
    uint64_t promised_units; /* sum over the running requests */
    struct request_list waiting, running, swapped;
    struct queue_window window;
    uint64_t policy_ns; /* what the policy was last told to be the time */
    uint64_t host_units, host_units_used; /* host memory for swapped requests */
    struct host_tier *host;        /* NULL: none */
    struct key_array evicted_keys; /* the pool's, not told the host tier yet */
    uint64_t running_seqs;
    kv_seq *free_seqs; /* stack, lowest number on top */
    uint64_t free_seq_count, request_seqs; /* free now; all that requests can have */

    /* Of the present pass and step. */
    bool refused;          /* a demand was refused for want of memory */
    bool head_refused_though_free;
    struct probe probe;
    struct sim_request *probe_request;
    struct scheduled *scheduled;
    size_t scheduled_count, scheduled_capacity;
    struct request_array preempted, finished, rejected;
    kv_block *block_log, *evict_log;
    size_t block_log_count, block_log_capacity, evict_log_count, evict_log_capacity;
    uint64_t step_queries, step_hits;
    struct host_traffic traffic; /* of the step: swaps and the host tier */
    uint64_t step_offloaded_blocks;

    struct abort_entry {
        uint64_t time, index;
        struct sim_request *request;
    } *aborts; /* binary heap by (time, index) */
    size_t abort_count, abort_capacity;
    struct sim_request *free_requests;

    struct hit_digest serial_hits; /* serial runs: hit blocks of each request, -1 for one that never fits */
    uint32_t *dead_of_block; /* scratch of engine_window.c; NULL without a window */
    uint64_t demand_units;   /* all that the last refused request would hold, for the verdict's arithmetic */
    uint64_t peak_held_bytes;
    uint64_t evictions_seen; /* of the policy's count */
    struct scheduler_calls calls;
    uint64_t checks;   /* how often the states could have been walked */
    bool started;      /* the first request has arrived */
    bool out_of_memory; /* the process's own: noticed in a place that cannot report it */
    struct err *err;
};

/* A scheduler, under its name. `pass` makes one scheduling pass at engine->now. A scheduler with `serial`
 * takes requests strictly one after another, in zero time; it has no pass. */
struct scheduler {
    const char *name, *summary, *source;
    const char *description; /* a paragraph */
    bool serial;
    double default_watermark;
    bool watermark_always; /* kept also while nothing runs */
    bool whole_prompts;    /* never cuts a prompt: a step must have room for the longest */
    bool skips;            /* serves running requests in the order of their admission, one token each where that is all
                              they need: quiet ones need no visit (engine_park.h) */
    void (*pass)(struct engine *engine);
    const struct scheduler_ops *plugin; /* of a plug-in; NULL: built in */
};
const struct scheduler *scheduler_find(const char *name);
size_t scheduler_count(void);
const struct scheduler *scheduler_at(size_t i);
/* Adds a plug-in's, before threads start. False when there is no room. */
#define SCHEDULERS_ADDED_MAX 32
bool scheduler_add(const struct scheduler_ops *ops);

/* Schedulers of plug-ins (scheduler_calls.c). The state; nothing happens for one that is built in. -1 with err. */
int scheduler_calls_init(struct engine *engine, struct err *err);
void scheduler_calls_release(struct engine *engine);
/* One pass of it: what struct scheduler's `pass` is. */
void scheduler_calls_pass(struct engine *engine);
/* Whether a run must end as passes in a row have computed nothing new: more than a sound scheduler can need, that computes the longest
 * sequence again, a token in each pass. */
static inline bool scheduler_calls_in_vain(const struct engine *engine)
{
    uint64_t barren = engine->calls.barren_passes;
    return barren > 100000 && barren - 100000 > engine->config.max_model_len;
}

/* One refused attempt, as its demand was made. */
struct refused_call {
    struct sim_request *request;
    struct kv_demand demand;
    bool held_back; /* by the scheduler, which did not ask the policy: hit and new_tokens are not known */
    uint64_t new_tokens; /* of each sequence, to be computed in the step */
    uint64_t ask_units, need_units, first_units, headroom_units; /* as in struct refusal_facts */
};

/* Services for schedulers (engine_memory.c). */

/* Tokens that the request's next phase has to compute in all: the prompt alone before a fork, else
 * prompt plus output so far. */
uint64_t request_target(const struct sim_request *request);
/* Sequences that compute tokens in the next step: 1 before a fork. */
uint32_t request_width(const struct sim_request *request);

/* Looks a waiting request up in the cache and the host tier; counts as the rule set says. hit is all zero without one. */
void engine_lookup(struct engine *engine, struct sim_request *request, struct engine_hit *hit);
/* The same, uncounted, for a request whose keys are there. */
void engine_find_hit(struct engine *engine, const struct sim_request *request, struct engine_hit *hit);
/* Counts a look-up of a waiting request with its hits on the device, where the rule set counts each of them. */
void engine_count_retry(struct engine *engine, struct sim_request *request, uint64_t hit_tokens);
/* Books a refused attempt (engine_refusals.c). */
void engine_book_refusal(struct engine *engine, const struct refused_call *call);
/* Whether the scheduler must say no to an ask that the policy might grant: it is refused, and booked as such, unless
 * that many units and the headroom are obtainable together. */
bool engine_hold_back(struct engine *engine, struct sim_request *request, enum kv_demand_kind kind,
                      uint64_t ask_units, uint64_t need_units, uint64_t headroom_units);
/* Whether admitting this head with this budget would be refused again, because nothing has changed since it was
 * refused; then the new attempt is booked. */
bool engine_refused_again(struct engine *engine, struct sim_request *request, uint64_t budget);
/* Admits a waiting request, of a built-in scheduler the head of the queue, with new_tokens of work (wanted_tokens, cut to the budget), or books the refusal. KV_NEVER_FITS: a verdict is
 * due. On KV_OK it is the last of the running ones. */
enum kv_status engine_admit(struct engine *engine, struct sim_request *request,
                            const struct engine_hit *hit, uint64_t wanted_tokens,
                            uint64_t new_tokens);
/* Keeps units back for a request just admitted, beyond those that it took. */
void engine_promise(struct engine *engine, struct sim_request *request, uint64_t units);
/* Grows a running request by n tokens of each sequence, or books the refusal. */
bool engine_extend(struct engine *engine, struct sim_request *request, uint64_t new_tokens);
/* Grows a parked request, its counters up to date, by the token that each of its sequences gets in this pass, without
 * booking that token. False when it was refused: nothing has changed, nothing is booked. */
bool engine_grow_parked(struct engine *engine, struct sim_request *request);
/* Takes a request out of the step's list of scheduled ones; returns the tokens it was to compute, 0 when it was not
 * in it. */
uint64_t engine_unschedule(struct engine *engine, struct sim_request *request);
/* Whether a is less important than b: priority, arrival, line of the trace. */
bool request_comes_after(const struct sim_request *a, const struct sim_request *b);
/* Puts a request among the waiting ones: at the end or the front, or where its priority belongs. */
void engine_enqueue(struct engine *engine, struct sim_request *request, bool front);
/* Puts a running request, all memory given back, at the head of the waiting queue. */
void engine_preempt(struct engine *engine, struct sim_request *request);
/* Units that n more tokens of each sequence take from the pool. */
uint64_t engine_growth_units(const struct engine *engine, const struct sim_request *request,
                             uint64_t new_tokens);
/* Moves a running, forked request's memory to the host (engine_swap.c). False when there is no room for it. */
bool engine_swap_out(struct engine *engine, struct sim_request *request);
/* Brings a swapped request back to the end of the running list unless units and samples with the headroom are not
 * obtainable; then books the refusal, or the verdict when nothing runs that could make room. */
bool engine_swap_in(struct engine *engine, struct sim_request *request, uint64_t headroom_units);
/* Ends the request with the verdict unservable; it may be waiting or running. */
void engine_unservable(struct engine *engine, struct sim_request *request, bool outgrew_pool);
/* The request runs alone and was refused: true when it can never go on. */
bool engine_outgrew_pool(struct engine *engine, struct sim_request *request);
/* A waiting request that would start now waits for a place among max_num_seqs. */
void engine_slot_wait(struct engine *engine, struct sim_request *request);

/* What an admission or a growth asks the policy for. The first chooses free sequences for the request. */
void engine_admission_ask(struct engine *engine, struct sim_request *request, const struct engine_hit *hit,
                          uint64_t new_tokens, struct kv_ask *ask);
void engine_growth_ask(const struct engine *engine, const struct sim_request *request, uint64_t new_tokens,
                       struct kv_ask *ask);
/* Makes the memory of a swapped request anew, in sequences chosen for it. False when the policy says no. */
bool engine_rebuild_swapped(struct engine *engine, struct sim_request *request);

/* Whether memory will become obtainable by itself, because pins end. */
bool engine_waits_for_pins(const struct engine *engine);

/* For the engine's own files. */
static inline bool engine_window_open(const struct engine *engine)
{
    return engine->now >= engine->accounting.window_begin && engine->now < engine->accounting.window_end;
}
/* Tells a policy that keeps time what time it is; pins that have ended are then no more. */
void engine_tell_time(struct engine *engine, uint64_t now_ns);
/* The waiting queue is changed by these alone. after NULL: at the front. */
int queue_window_init(struct engine *engine); /* -1: out of memory */
void queue_window_release(struct queue_window *window);
void engine_queue_insert(struct engine *engine, struct sim_request *after, struct sim_request *request);
void engine_queue_remove(struct engine *engine, struct sim_request *request);
/* For the policy's observer: whether an announced request has the key. */
bool engine_queue_expects(const struct engine *engine, uint64_t key);
/* The only way to set engine->now: what was evicted until then is counted, by whether the window is open. */
void engine_move_clock(struct engine *engine, uint64_t now);
void engine_take_content(struct engine *engine, struct sim_request *request,
                         const struct wl_request *from);
/* Lengths after the cuts that the model and the client's limit make. */
void engine_set_lengths(const struct engine *engine, struct sim_request *request, const struct wl_request *from);
/* Whether the request is turned away as it comes: no tokens or too many, more samples than can ever run. */
bool engine_never_runs(const struct engine *engine, const struct wl_request *from);

/* The future (engine_future.c), of policies that foresee; else nothing happens. Reads the source to its end and rewinds it. -1 with
 * engine->err; ERR_USAGE: the source can be read only once. */
int engine_read_future(struct engine *engine, struct wl_source *source);
/* The observer's answer. */
uint64_t engine_next_use(void *engine, uint64_t key);
/* The request is not ahead any more, as it was admitted for the first time just now or ends without that. */
void engine_pass(struct engine *engine, struct sim_request *request);

/* Makes the content keys of all blocks that the request will ever fill, once. False when memory is out. */
bool engine_prepare_keys(struct engine *engine, struct sim_request *request);
/* Whether nobody can tell if the blocks that a decoding request fills get their keys at once or later, at the latest when
 * they are released: the policy does not care, and no other request can have the same content. It is new even after a
 * preemption, as what was filled before is computed anew as a prompt, and keyed at once. */
bool engine_keys_may_wait(const struct engine *engine, const struct sim_request *request);
/* Tells the infinite cache what the request has filled by now. */
void engine_share_filled(struct engine *engine, struct sim_request *request);
/* Leading tokens of the request's prompt that the infinite cache has. */
uint64_t engine_shared_tokens(struct engine *engine, const struct sim_request *request);
/* Nothing more will be told. */
void engine_unshare(struct engine *engine, struct sim_request *request);
void engine_release_memory(struct engine *engine, struct sim_request *request);
/* Ends the request wherever it is: memory back, out of its queue, storage free. */
void engine_drop(struct engine *engine, struct sim_request *request);
void engine_fork(struct engine *engine, struct sim_request *request);
void engine_account(struct engine *engine, struct sim_request *request);
void engine_close_refusal(struct engine *engine, struct sim_request *request);
void engine_leave_host(struct engine *engine, struct sim_request *request);
void engine_count_preemption(struct engine *engine, struct sim_request *request);
/* The host tier (engine_host.c); nothing happens without one. -1 with err. */
int engine_host_init(struct engine *engine, struct err *err);
void engine_host_release(struct engine *engine);
/* The pool has lost a key. Only with a host tier. */
void engine_host_evicted(struct engine *engine, uint64_t key);
/* Tells the tier what the pool has evicted until now. */
void engine_host_flush(struct engine *engine);
/* The same at the end of a pass, for its books. */
void engine_host_end_pass(struct engine *engine);
/* Adds to what the device has of a request what the host has behind it. */
void engine_host_look(struct engine *engine, const struct sim_request *request, struct engine_hit *hit);
/* Copies that to the device, for a request that has just been admitted with it. */
void engine_host_fetch(struct engine *engine, const struct sim_request *request, const struct engine_hit *hit);
void engine_event(struct engine *engine, enum event_kind kind, const struct sim_request *request,
                  uint64_t a, uint64_t b);
void *engine_grow_array(struct engine *engine, void *items, size_t count, size_t *capacity,
                        size_t item_bytes);
/* Lets the accounting count dead slots in shared blocks. -1 when memory is out. */
int engine_window_init(struct engine *engine);
void engine_array_add(struct engine *engine, struct request_array *array,
                      struct sim_request *request);
/* Frees what a request owns, not the request. */
void request_release(struct sim_request *request);
/* Clients that leave: remembered at arrival, carried out at the first pass at or after their time. */
void engine_expect_abort(struct engine *engine, struct sim_request *request);
void engine_apply_aborts(struct engine *engine);
int engine_run_serial(struct engine *engine, struct wl_source *source);
/* A request made from the trace's, counted and with all cuts applied; NULL when it was rejected or
 * cannot ever be scheduled, or memory is out (engine->out_of_memory). */
struct sim_request *engine_arrive(struct engine *engine, const struct wl_request *from);

#endif
