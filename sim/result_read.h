/* Reads a results line back. */
#ifndef PAGESIM_RESULT_READ_H
#define PAGESIM_RESULT_READ_H

#include "sim/result.h"

/* Fills an initialised result from one line of a results file: a flat JSON object of numbers, texts,
 * booleans and nulls. -1 when it is not one (the result then holds nothing of use). */
int result_read_line(const char *line, struct result *result);

#endif
