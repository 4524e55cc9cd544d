/* The pool drawn by address: blocks as boxes, or, when there are too many, and for regions, as rows of signs to scale. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "sim/accounting_check.h"
#include "sim/explain.h"

/* What a sign stands for; held slots before the others. */
enum sign { SIGN_LIVE, SIGN_DEAD, SIGN_RESERVED, SIGN_INTERNAL, SIGN_ROUNDING, SIGN_CACHED, SIGN_PINNED, SIGN_FREE, SIGN_OVERHEAD, SIGN_COUNT };

static const struct {
    const char *ascii, *utf8, *words;
} signs[SIGN_COUNT] = {
    [SIGN_LIVE] = {"A", "A", "live"},
    [SIGN_DEAD] = {"a", "a", "dead"},
    [SIGN_RESERVED] = {".", "·", "reserved"},
    [SIGN_INTERNAL] = {"!", "░", "internal"},
    [SIGN_ROUNDING] = {"%", "▒", "rounding"},
    [SIGN_CACHED] = {"c", "c", "cached"},
    [SIGN_PINNED] = {"p", "p", "pinned"},
    [SIGN_FREE] = {" ", " ", "free"},
    [SIGN_OVERHEAD] = {"x", "x", "overhead"},
};

#define BOX_SLOTS_MAX 64u

char explain_letter(uint64_t request)
{
    return (char)('A' + request % 26);
}

/* What a picture has, for the line that explains it. */
struct notes {
    bool seen[SIGN_COUNT];
    bool shared, keyed;
    uint64_t scale; /* slots of one sign */
};

static enum sign slot_sign(const struct memory_map *m, uint64_t slot)
{
    const struct map_unit *unit = &m->units[slot / m->unit_tokens];
    uint8_t marks = m->marks[slot];
    if (unit->kind == UNIT_FREE) return SIGN_FREE;
    if (unit->kind == UNIT_CACHED) return SIGN_CACHED;
    if (unit->kind == UNIT_PINNED) return SIGN_PINNED;
    if (unit->kind == UNIT_OVERHEAD) return SIGN_OVERHEAD;
    if (marks == MARK_ROUNDING) return SIGN_ROUNDING;
    switch (slot_state(marks)) {
    case STATE_LIVE: return SIGN_LIVE;
    case STATE_DEAD: return SIGN_DEAD;
    case STATE_RESERVED: return SIGN_RESERVED;
    default: return SIGN_INTERNAL;
    }
}

/* One sign for the slots from begin to end: the one that most of them have. */
static void put_sign(struct explain_screen *s, const struct memory_map *m, uint64_t begin, uint64_t end, bool seen[SIGN_COUNT])
{
    uint64_t counts[SIGN_COUNT] = {0}, owner = UINT64_MAX;
    enum sign most = SIGN_LIVE;
    for (uint64_t slot = begin; slot < end; slot++) counts[slot_sign(m, slot)]++;
    for (int i = 1; i < SIGN_COUNT; i++) {
        if (counts[i] > counts[most]) most = (enum sign)i;
    }
    for (uint64_t slot = begin; slot < end && owner == UINT64_MAX; slot++) {
        if (most <= SIGN_ROUNDING && slot_sign(m, slot) == most) owner = m->units[slot / m->unit_tokens].index;
    }
    seen[most] = true;
    if (most > SIGN_DEAD) {
        explain_put(s, owner, s->utf8 ? signs[most].utf8 : signs[most].ascii);
        return;
    }
    char letter[2] = {explain_letter(owner), '\0'};
    if (most == SIGN_DEAD) letter[0] = (char)tolower((unsigned char)letter[0]);
    explain_put(s, owner, letter);
}

static unsigned digits(uint64_t number)
{
    unsigned n = 1;
    while (number >= 10) number /= 10, n++;
    return n;
}

/* --- boxes --------------------------------------------------------------------------------------- */

struct boxes {
    unsigned number_columns, signs, slots_each; /* slots of one sign */
    unsigned per_row, rows;
};

/* The widest signs that fit the rows. False: not even one sign a block does. */
static bool choose_boxes(const struct explain_screen *s, const struct memory_map *m, unsigned rows, struct boxes *b)
{
    if (m->unit_tokens == 0 || m->first_number + m->count > UINT32_MAX) return false;
    b->number_columns = digits(m->first_number + m->count - 1);
    for (unsigned each = 1; each <= m->unit_tokens; each++) {
        b->slots_each = each;
        b->signs = (m->unit_tokens + each - 1) / each;
        unsigned columns = b->number_columns + b->signs + 5; /* brackets, holders, key, blank */
        if (b->signs > BOX_SLOTS_MAX || columns > s->columns) continue;
        b->per_row = s->columns / columns;
        uint64_t wanted = (m->count + b->per_row - 1) / b->per_row;
        b->rows = wanted > rows ? rows + 1 : (unsigned)wanted;
        if (b->rows <= rows) return true;
    }
    return false;
}

static void put_box(struct explain_screen *s, const struct engine *e, const struct memory_map *m, const struct boxes *b, uint64_t i,
                    struct notes *n)
{
    const struct kv_policy *p = e->policy;
    uint64_t number = m->first_number + i;
    explain_putf(s, "%*" PRIu64 "[", (int)b->number_columns, number);
    for (unsigned k = 0; k < m->unit_tokens; k += b->slots_each) {
        unsigned end = k + b->slots_each < m->unit_tokens ? k + b->slots_each : m->unit_tokens;
        put_sign(s, m, i * m->unit_tokens + k, i * m->unit_tokens + end, n->seen);
    }
    bool keyed = number > 0 && p->ops->keyed && p->ops->keyed(p, (kv_block)number, NULL);
    bool shared = m->units[i].holders > 1, last = (i + 1) % b->per_row == 0 || i + 1 == m->count;
    char behind[4], *end = behind;
    if (shared) *end++ = m->units[i].holders > 9 ? '+' : (char)('0' + m->units[i].holders);
    if (keyed) *end++ = '#';
    *end = '\0';
    n->shared |= shared;
    n->keyed |= keyed;
    explain_put(s, UINT64_MAX, "]");
    explain_putf(s, last ? "%s" : "%-3s", behind);
}

/* --- rows of signs --------------------------------------------------------------------------------- */

struct strip {
    unsigned number_columns, signs, rows;
    uint64_t slots_each;
};

static void choose_strip(const struct explain_screen *s, const struct memory_map *m, unsigned rows, struct strip *t)
{
    uint64_t slots = m->count * m->unit_tokens;
    t->number_columns = digits(m->first_number + m->count - 1);
    t->signs = (s->columns - t->number_columns - 2) / 10 * 10;
    uint64_t signs_all = (uint64_t)t->signs * (rows ? rows : 1);
    t->slots_each = (slots + signs_all - 1) / signs_all;
    uint64_t used = (slots + t->slots_each - 1) / t->slots_each;
    t->rows = (unsigned)((used + t->signs - 1) / t->signs);
}

static void draw_strip(struct explain_screen *s, const struct memory_map *m, unsigned rows, bool seen[SIGN_COUNT], uint64_t *scale)
{
    struct strip t;
    uint64_t slots = m->count * m->unit_tokens;
    choose_strip(s, m, rows, &t);
    *scale = t.slots_each;
    for (uint64_t slot = 0; slot < slots;) {
        explain_putf(s, "%*" PRIu64 "|", (int)t.number_columns, m->first_number + slot / m->unit_tokens);
        for (unsigned k = 0; k < t.signs && slot < slots; k++) {
            uint64_t end = slots - slot < t.slots_each ? slots : slot + t.slots_each;
            put_sign(s, m, slot, end, seen);
            slot = end;
        }
        explain_put(s, UINT64_MAX, "|");
        explain_end_line(s);
    }
}

/* --- both ------------------------------------------------------------------------------------------- */

unsigned explain_pool_rows(const struct explain_screen *s, const struct memory_map *m, unsigned rows)
{
    struct boxes b;
    struct strip t;
    if (m->unit_tokens > 1 && choose_boxes(s, m, rows, &b)) return b.rows;
    choose_strip(s, m, rows, &t);
    return t.rows;
}

static void draw_legend(struct explain_screen *s, const struct notes *n)
{
    explain_put(s, UINT64_MAX, "signs:");
    for (int i = 0; i < SIGN_COUNT; i++) {
        if (!n->seen[i]) continue;
        if (i == SIGN_FREE) explain_put(s, UINT64_MAX, " blank free");
        else explain_putf(s, " %s %s", s->utf8 ? signs[i].utf8 : signs[i].ascii, signs[i].words);
    }
    if (n->shared) explain_put(s, UINT64_MAX, " ]2 two hold it");
    if (n->keyed) explain_put(s, UINT64_MAX, " ]# has a key");
    if (n->scale > 1) explain_putf(s, "; one for %" PRIu64 " slots", n->scale);
    explain_end_line(s);
}

void explain_pool(struct explain_screen *s, const struct engine *e, const struct memory_map *m, unsigned rows)
{
    struct notes n = {.scale = 1};
    struct boxes b;
    if (m->unit_tokens > 1 && choose_boxes(s, m, rows, &b)) {
        n.scale = b.slots_each;
        for (uint64_t i = 0; i < m->count; i++) {
            put_box(s, e, m, &b, i, &n);
            if ((i + 1) % b.per_row == 0 || i + 1 == m->count) explain_end_line(s);
        }
    } else {
        draw_strip(s, m, rows, n.seen, &n.scale);
    }
    draw_legend(s, &n);
}
