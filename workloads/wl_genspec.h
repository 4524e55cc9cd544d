/* What a generator makes, from a text `key=value,key=value,...`; docs/traces.md explains the keys. */
#ifndef PAGESIM_WL_GENSPEC_H
#define PAGESIM_WL_GENSPEC_H

#include <stdbool.h>

#include "workloads/wl_dist.h"

enum wl_arrivals { WL_ARRIVALS_NONE, WL_ARRIVALS_POISSON, WL_ARRIVALS_GAMMA, WL_ARRIVALS_ONOFF,
                   WL_ARRIVALS_CONSTANT };

enum wl_content { WL_CONTENT_DEFAULT, WL_CONTENT_NONE, WL_CONTENT_TOKENS, WL_CONTENT_IDS };

enum { WL_TURNS_MAX = 16 };

struct wl_genspec {
    uint64_t requests;
    enum wl_arrivals arrivals;   /* of requests, or of conversations with `continue` */
    double rate_per_s, cv, on_s, off_s;
    double tick_s;               /* arrivals are rounded down to a multiple; 0: not at all */
    struct wl_dist prompt, output, samples;
    struct wl_dist max_tokens;   /* declared limit; only with has_max_tokens */
    bool has_max_tokens;
    double abort_ratio;
    struct wl_dist abort_delay_s;

    uint64_t prefix_groups;      /* 0: no shared prefix */
    uint64_t prefix_tokens;
    double prefix_zipf;
    bool prefix_within;          /* the prompt's length includes the prefix */

    uint64_t sessions;           /* each request continues one of so many conversations; 0: no */
    double session_zipf;
    double continue_ratio[WL_TURNS_MAX]; /* chance that turn 1, 2, ... is followed by another one;
                                            the last holds for all later ones */
    size_t continue_count;       /* 0: no conversations that arrive and go on */
    struct wl_dist think_s;      /* from a turn's arrival to the next one's */
    double think_scale[WL_TURNS_MAX]; /* times this after turn 1, 2, ...; the last holds for all later ones */
    size_t think_scale_count;    /* 0: 1 for all */
    struct wl_dist turn_prompt;  /* new tokens of later turns */
    bool has_turn_prompt;
    bool history_is_prompt;      /* a later turn repeats the old prompt, not its output */
    double branch_ratio;         /* share of later turns that keep only a part of the old prompt */
    struct wl_dist branch_prompt;
    bool has_branch_prompt;
    uint64_t context_tokens_max; /* of prompt + output; 0: no limit */

    bool redraw_overlong;        /* draw the lengths of a first turn that passes the limit again */

    enum wl_content content;     /* never DEFAULT after parsing */
    uint32_t id_tokens;          /* of one id under WL_CONTENT_IDS */
};

/* 0, or -1 with err. */
int wl_genspec_parse(struct wl_genspec *spec, const char *text, struct err *err);
void wl_genspec_release(struct wl_genspec *spec);

/* The keys, so that options can be named after them. */
struct wl_genspec_key {
    const char *name;
    const char *default_text; /* or NULL */
    const char *value;        /* what help calls it */
    const char *help;
};
size_t wl_genspec_key_count(void);
const struct wl_genspec_key *wl_genspec_key_at(size_t i);

#endif
