/* From options and the plan of the server to what lives beside the pool. */
#ifndef PAGESIM_EDGE_OPTIONS_H
#define PAGESIM_EDGE_OPTIONS_H

#include "sim/edge.h"
#include "sim/optset.h"

/* The plan's default where neither a model nor the options say what activations take: Llama-3-8B in 16 bits, the wide
 * part of the feed-forward (2 x 14,336), its product (14,336) and two residual streams (4,096 each), 2 bytes an element. */
#define EDGE_TOKEN_BYTES 102400u

/* Fills in *edge; model EDGE_NONE unless --device-model says otherwise. -1 with err (ERR_USAGE). */
int edge_from_options(struct edge_config *edge, const struct optset *set, const struct options *options, struct err *err);
/* 'BYTES@WHEN', WHEN a time or step:N, then perhaps ':torch'. */
int edge_buffer_parse(struct edge_buffer *buffer, const char *text, struct err *err);

#endif
