/* `run --record DIR` and `--report FILE`: the result and all detail files of a run in one folder, and a page made of them.
 * For --report alone the folder is a temporary one. */
#ifndef PAGESIM_RUN_RECORD_H
#define PAGESIM_RUN_RECORD_H

#include "sim/options.h"
#include "sim/page.h"
#include "sim/result.h"

struct run_record {
    char *folder; /* NULL: nothing is recorded */
    bool temporary;
    char *paths[DETAIL_COUNT]; /* chosen here; NULL: the user's own, or none */
};

/* Makes the folder, and puts names in it into those options for detail files that are unset: *options then points into
 * *record. With neither option it does nothing. -1 with err. Release it in either case. */
int run_record_open(struct run_record *record, struct options *options, struct err *err);
/* Once the detail files are complete: result.json, and the page. */
int run_record_finish(const struct run_record *record, const struct options *options, const struct result *result, struct err *err);
void run_record_release(struct run_record *record);

#endif
