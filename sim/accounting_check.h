/* The states of the pool from first principles: every slot of every block table of every running request is
 * looked at, one by one. Slow and obvious; what the sums in accounting.c are compared with under --check. */
#ifndef PAGESIM_ACCOUNTING_CHECK_H
#define PAGESIM_ACCOUNTING_CHECK_H

#include "sim/engine_core.h"

#define ACCOUNTING_WALK_TEXT 240

/* What the holders of one slot say of it; any of them may. */
enum slot_mark { MARK_ASKED = 1, MARK_LATER = 2, MARK_FILLED = 4, MARK_READ = 8 };
/* How a running request uses slot t of one of its sequences, which is filled to `filled`. */
uint8_t slot_mark(const struct engine *engine, const struct sim_request *request, uint64_t t, uint64_t filled);
/* live, dead, reserved or internal: what all marks of a slot that somebody holds come to. */
enum state slot_state(uint8_t marks);

/* Compares engine->accounting.now, as accounting_set left it for this probe (NULL after a step's end),
 * with a walk. NULL when all agree, else text: policy, time, what differs and both values. O(pool slots);
 * "out of memory" when the walk's own table cannot be had. */
const char *accounting_walk(const struct engine *engine, const struct probe *probe,
                            char text[ACCOUNTING_WALK_TEXT]);

/* The same at every engine->config.check_every-th call; prints the text and aborts when something differs. */
void accounting_check(struct engine *engine, const struct probe *probe);

#endif
