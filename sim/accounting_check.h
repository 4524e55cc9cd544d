/* The states of the pool from first principles: every slot of every block table of every running request is
 * looked at, one by one. Slow and obvious; what the sums in accounting.c are compared with under --check. */
#ifndef PAGESIM_ACCOUNTING_CHECK_H
#define PAGESIM_ACCOUNTING_CHECK_H

#include "sim/engine_core.h"

#define ACCOUNTING_WALK_TEXT 240

/* Compares engine->accounting.now, as accounting_set left it for this probe (NULL after a step's end),
 * with a walk. NULL when all agree, else text: policy, time, what differs and both values. O(pool slots);
 * "out of memory" when the walk's own table cannot be had. */
const char *accounting_walk(const struct engine *engine, const struct probe *probe,
                            char text[ACCOUNTING_WALK_TEXT]);

/* The same at every engine->config.check_every-th call; prints the text and aborts when something differs. */
void accounting_check(struct engine *engine, const struct probe *probe);

#endif
