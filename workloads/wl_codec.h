/* A request as a few bytes: variable-length integers, ids as differences. Traces in memory and
 * sorting keep requests in this form; about 10 bytes without content, about 1 a content id when ids
 * count upwards. Not a file format: it may change. */
#ifndef PAGESIM_WL_CODEC_H
#define PAGESIM_WL_CODEC_H

#include "workloads/wl_draft.h"

/* Appends the draft's request. -1: out of memory. */
int wl_encode(const struct wl_draft *draft, struct wl_text *bytes);
/* Fills the draft (serial and finishing included) from what wl_encode made and moves *at behind it.
 * Strings are copied. -1: out of memory. */
int wl_decode(const char **at, struct wl_draft *draft);

#endif
