#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/explain.h"
#include "sim/numbers.h"

/* --- text of a known width -------------------------------------------------------------------- */

static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void explain_put(struct explain_screen *s, uint64_t request, const char *text)
{
    size_t room = s->columns > s->column ? s->columns - s->column : 0, width = width_of(text), bytes = strlen(text);
    if (width > room) {
        for (bytes = 0, width = 0; width < room; bytes++) width += ((unsigned char)text[bytes + 1] & 0xc0) != 0x80;
    }
    /* Twelve colours that differ also for the colour-blind when letters stand beside them. */
    static const uint8_t palette[] = {33, 208, 34, 170, 37, 220, 99, 203, 71, 141, 109, 178};
    bool tint = s->color && request != UINT64_MAX && bytes > 0;
    if (tint) fprintf(s->out, "\033[38;5;%um", palette[request % sizeof palette]);
    fwrite(text, 1, bytes, s->out);
    if (tint) fputs("\033[0m", s->out);
    s->column += (unsigned)width;
}

void explain_putf(struct explain_screen *s, const char *format, ...)
{
    char text[EXPLAIN_SENTENCE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    explain_put(s, UINT64_MAX, text);
}

void explain_end_line(struct explain_screen *s)
{
    fputc('\n', s->out);
    s->column = 0;
}

/* --- lists that may be cut -------------------------------------------------------------------- */

/* Items one after another over at most `rows` lines; what is left is counted. */
struct list {
    struct explain_screen *s;
    unsigned indent, rows;
    bool cut;
};

static struct list list_begin(struct explain_screen *s, const char *title, unsigned rows)
{
    explain_put(s, UINT64_MAX, title);
    return (struct list){.s = s, .indent = (unsigned)width_of(title), .rows = rows};
}

#define MORE_COLUMNS 10u /* " +1234567" */

static bool list_item(struct list *l, uint64_t request, const char *text, uint64_t left)
{
    struct explain_screen *s = l->s;
    size_t width = 1 + width_of(text);
    if (l->cut) return false;
    size_t room = s->columns - (l->rows <= 1 && left > 1 ? MORE_COLUMNS : 0);
    if (s->column + width > room && s->column > l->indent) {
        if (l->rows <= 1) {
            explain_putf(s, " +%" PRIu64, left);
            l->cut = true;
            return false;
        }
        l->rows--;
        explain_end_line(s);
        explain_putf(s, "%*s", (int)l->indent, "");
    }
    explain_put(s, UINT64_MAX, " ");
    explain_put(s, request, text);
    return true;
}

static void list_end(struct list *l)
{
    explain_end_line(l->s);
}

/* --- parts of the picture --------------------------------------------------------------------- */

static bool in_blocks(const struct engine *e)
{
    return e->policy->ops->table != NULL;
}

static void draw_head(struct explain_screen *s, const struct engine *e, const struct explain_moment *m)
{
    bool serial = e->config.scheduler->serial;
    explain_putf(s, "%s %" PRIu64 "%s", serial ? "request" : "step", serial ? e->stats.requests - 1 : e->stats.steps,
                 serial ? "" : m->kind == LOOK_PASS ? ", scheduled" : "+, ended");
    if (!serial) explain_putf(s, " at %" PRIu64 " ns", e->now);
    explain_putf(s, "; %s%s", e->policy->ops->name, e->policy->foresees ? " (clairvoyant heuristic)" : "");
    if (in_blocks(e)) explain_putf(s, ", %" PRIu64 " blocks of %" PRIu32, e->policy->usable_units, e->policy->block_tokens);
    else explain_putf(s, ", %" PRIu64 " slots", e->policy->usable_units);
    if (m->instants > 0) explain_putf(s, "; instant %" PRIu64 " of %" PRIu64, m->instant + 1, m->instants);
    explain_end_line(s);
}

/* In slots, whole where the pool's remainder is left out. */
static void draw_states(struct explain_screen *s, const struct engine *e)
{
    const uint64_t *bytes = e->accounting.now.state_bytes;
    uint64_t token = e->config.geometry.bytes_per_token;
    struct list l = list_begin(s, "slots:", 1);
    for (int i = 0; i < STATE_COUNT; i++) {
        char text[64];
        if (bytes[i] == 0 || (bytes[i] < token && i == STATE_OVERHEAD)) continue;
        if (bytes[i] % token == 0 || i == STATE_OVERHEAD) snprintf(text, sizeof text, "%s %" PRIu64, state_names[i], bytes[i] / token);
        else snprintf(text, sizeof text, "%s %.1f", state_names[i], (double)bytes[i] / (double)token);
        list_item(&l, UINT64_MAX, text, 1);
    }
    list_end(&l);
}

static void draw_events(struct explain_screen *s, const struct engine *e, const struct explain_events *v, unsigned rows)
{
    size_t count = explain_sentences(v), shown = count <= rows ? count : rows > 1 ? rows - 1 : 1;
    char text[EXPLAIN_SENTENCE_BYTES];
    for (size_t i = 0; i < shown; i++) {
        explain_sentence(v, e, i, text);
        explain_put(s, UINT64_MAX, "* ");
        explain_put(s, UINT64_MAX, text);
        explain_end_line(s);
    }
    if (shown < count && rows > 1) {
        explain_putf(s, "* and %zu more", count - shown);
        explain_end_line(s);
    }
    if (count == 0) {
        explain_put(s, UINT64_MAX, "* nothing but tokens");
        explain_end_line(s);
    }
}

static void draw_place(struct list *l, const struct engine *e, kv_seq seq)
{
    char text[64];
    if (e->policy->ops->table) {
        uint32_t count;
        const kv_block *table = e->policy->ops->table(e->policy, seq, &count);
        for (uint32_t i = 0; i < count; i++) {
            snprintf(text, sizeof text, table[i] ? "%" PRIu32 : "-", table[i]);
            if (!list_item(l, UINT64_MAX, text, count - i)) return;
        }
    } else if (e->policy->ops->region) {
        struct kv_region region;
        e->policy->ops->region(e->policy, seq, &region);
        snprintf(text, sizeof text, "%" PRIu64 "..%" PRIu64, region.first_unit, region.first_unit + region.asked_units);
        list_item(l, UINT64_MAX, text, 1);
        if (region.taken_units == region.asked_units) return;
        snprintf(text, sizeof text, "(to %" PRIu64 ")", region.first_unit + region.taken_units);
        list_item(l, UINT64_MAX, text, 1);
    }
}

static void draw_sequence(struct explain_screen *s, const struct engine *e, const struct sim_request *r, uint32_t sample)
{
    char name[24], title[2] = {explain_letter(r->index), '\0'};
    uint64_t filled = sample == 0 || r->forked ? r->filled : 0;
    explain_put(s, r->index, title);
    explain_putf(s, " request %.24s", sim_request_name(r, name, sizeof name));
    if (r->kv.samples > 1) explain_putf(s, " sample %" PRIu32, sample + 1);
    explain_putf(s, ": %" PRIu64 " of %" PRIu64 " tokens;%s", filled, r->kv.final_tokens,
                 in_blocks(e) ? " blocks" : " slots");
    struct list l = {.s = s, .indent = s->column, .rows = 1};
    draw_place(&l, e, r->seqs[sample]);
    list_end(&l);
}

static uint64_t sequences(const struct engine *e)
{
    return e->running_seqs;
}

static void draw_running(struct explain_screen *s, const struct engine *e, unsigned rows)
{
    uint64_t left = sequences(e);
    if (left == 0) {
        explain_put(s, UINT64_MAX, "nothing runs");
        explain_end_line(s);
    }
    for (const struct sim_request *r = e->running.head; r; r = r->next) {
        for (uint32_t i = 0; i < r->kv.samples; i++, left--, rows--) {
            if (rows == 1 && left > 1) {
                explain_putf(s, "  and %" PRIu64 " more sequences", left);
                explain_end_line(s);
                return;
            }
            draw_sequence(s, e, r, i);
        }
    }
}

static void draw_queue(struct explain_screen *s, const struct engine *e, const struct memory_map *m, unsigned rows)
{
    if (!e->policy->ops->free_queue) return;
    struct list l = list_begin(s, "free queue:", rows);
    char text[24];
    for (uint64_t i = 0; i < m->queue_count; i++) {
        enum unit_kind kind = m->units[m->queue[i] - m->first_number].kind;
        bool keyed = kind == UNIT_CACHED || kind == UNIT_PINNED;
        snprintf(text, sizeof text, "%" PRIu32 "%s", m->queue[i], keyed ? "#" : "");
        if (!list_item(&l, UINT64_MAX, text, m->queue_count - i)) break;
    }
    if (m->queue_count == 0) explain_put(s, UINT64_MAX, " empty");
    list_end(&l);
}

static void draw_waiting(struct explain_screen *s, const struct engine *e)
{
    const struct request_list *lists[] = {&e->waiting, &e->swapped};
    for (size_t q = 0; q < 2; q++) {
        if (q == 1 && lists[q]->count == 0) return;
        struct list l = list_begin(s, q ? "swapped:" : "waiting:", 1);
        uint64_t left = lists[q]->count;
        if (left == 0) explain_put(s, UINT64_MAX, " nobody");
        for (const struct sim_request *r = lists[q]->head; r; r = r->next, left--) {
            char name[24], text[80];
            snprintf(text, sizeof text, "%c request %.24s (%" PRIu64 "%s)", explain_letter(r->index), sim_request_name(r, name, sizeof name),
                     r->prompt_tokens + r->outputs, r->preemptions > 0 ? " tokens, again" : " tokens");
            if (!list_item(&l, r->index, text, left)) break;
        }
        list_end(&l);
    }
}

/* --- chains ------------------------------------------------------------------------------------- */

struct chains {
    const struct explain_keys *keys;
    uint32_t *block_of; /* [count + 1] the lowest block that carries key number i, or 0 */
    bool *has_child;    /* another keyed block follows it */
};

static bool find_chains(const struct engine *e, const struct memory_map *m, const struct explain_keys *keys, struct chains *c)
{
    *c = (struct chains){keys, calloc(keys->count + 1, sizeof *c->block_of), calloc(keys->count + 1, sizeof *c->has_child)};
    if (!c->block_of || !c->has_child) return false;
    for (uint64_t i = 0; i < m->count; i++) {
        uint64_t key, number = m->first_number + i;
        if (number == 0 || !e->policy->ops->keyed(e->policy, (kv_block)number, &key)) continue;
        uint32_t k = explain_key_number(keys, key);
        if (k > 0 && c->block_of[k] == 0) c->block_of[k] = (uint32_t)number;
    }
    for (uint32_t k = 1; k <= keys->count; k++) {
        /* Behind a gap too: a block whose chain lost one in the middle hangs at the next that is there. */
        uint32_t parent = c->block_of[k] ? explain_key_parent(keys, k) : 0;
        for (; parent > 0 && !c->has_child[parent]; parent = explain_key_parent(keys, parent)) c->has_child[parent] = true;
    }
    return true;
}

#define CHAIN_SHOWN 8 /* the last blocks of a longer one */

/* "1>2>5": blocks by content from the first on; "?" where a block of the chain is gone. */
static void chain_text(const struct chains *c, uint32_t last, char *text, size_t bytes)
{
    uint32_t path[CHAIN_SHOWN], count = 0;
    uint32_t k = last;
    for (; k > 0 && count < CHAIN_SHOWN; k = explain_key_parent(c->keys, k)) path[count++] = k;
    size_t n = (size_t)snprintf(text, bytes, "%s", k > 0 ? "..>" : "");
    while (count-- > 0 && n < bytes) {
        uint32_t block = c->block_of[path[count]];
        if (block) n += (size_t)snprintf(text + n, bytes - n, "%" PRIu32 "%s", block, count ? ">" : "");
        else n += (size_t)snprintf(text + n, bytes - n, "?%s", count ? ">" : "");
    }
}

static void draw_chains(struct explain_screen *s, const struct engine *e, const struct memory_map *m,
                        const struct explain_keys *keys, unsigned rows)
{
    struct chains c = {0};
    if (!e->caches || keys->full || !e->policy->ops->keyed) return;
    uint64_t left = 0;
    if (find_chains(e, m, keys, &c)) {
        for (uint32_t k = 1; k <= keys->count; k++) left += c.block_of[k] > 0 && !c.has_child[k];
        struct list l = list_begin(s, "hash chains:", rows);
        if (left == 0) explain_put(s, UINT64_MAX, " none");
        for (uint32_t k = 1; k <= keys->count; k++) {
            char text[256];
            if (c.block_of[k] == 0 || c.has_child[k]) continue;
            chain_text(&c, k, text, sizeof text);
            if (!list_item(&l, UINT64_MAX, text, left--)) break;
        }
        list_end(&l);
    }
    free(c.block_of);
    free(c.has_child);
}

/* --- the whole ---------------------------------------------------------------------------------- */

/* How the rows of the screen are shared out. */
struct layout {
    unsigned sentences, pool, running, lists; /* lists: each of the free queue and the chains */
};

static struct layout share_out(const struct explain_screen *s, const struct engine *e, const struct memory_map *m,
                               const struct explain_events *events)
{
    struct layout l = {.lists = s->rows < 20 ? 1 : 2};
    unsigned lists = (e->policy->ops->free_queue ? l.lists : 0) + (e->caches ? l.lists : 0) + (e->swapped.count > 0);
    unsigned rows = (unsigned)above(s->rows, lists + 5); /* head of 2, signs, waiting, the prompt */
    unsigned told_most = rows > 12 ? rows / 4 : rows > 8 ? 3 : 1;
    l.sentences = (unsigned)min_u64(explain_sentences(events), told_most);
    if (l.sentences == 0) l.sentences = 1;
    rows = (unsigned)above(rows, l.sentences);
    if (rows < 2) rows = 2;
    uint64_t seqs = sequences(e) ? sequences(e) : 1;
    l.pool = seqs < rows / 2 ? rows - (unsigned)seqs : rows / 2;
    l.running = rows - explain_pool_rows(s, m, l.pool);
    return l;
}

int explain_draw(struct explain_screen *s, struct engine *e, const struct explain_moment *moment, struct memory_map *m,
                 struct err *err)
{
    if (!m->units && memory_map_init(m, e, err)) return -1;
    memory_map_take(m, e);
    s->column = 0;
    struct layout l = share_out(s, e, m, moment->events);
    draw_head(s, e, moment);
    draw_states(s, e);
    draw_events(s, e, moment->events, l.sentences);
    explain_pool(s, e, m, l.pool);
    draw_running(s, e, l.running);
    draw_queue(s, e, m, l.lists);
    draw_chains(s, e, m, moment->keys, l.lists);
    draw_waiting(s, e);
    return 0;
}
