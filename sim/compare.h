/* `pagesim compare`: two results, paired (docs/compare.md). */
#ifndef PAGESIM_COMPARE_H
#define PAGESIM_COMPARE_H

#include <stdio.h>

#include "sim/optset.h"
#include "sim/result.h"

/* Two results of the same requests. */
struct compare_pair {
    const struct result *a, *b;
};

enum compare_verdict {
    COMPARE_SAME,      /* equal in every pair */
    COMPARE_LOWER,     /* B is lower: the interval lies below 0, or there is one pair and no interval */
    COMPARE_HIGHER,
    COMPARE_NOT_SHOWN, /* the interval holds 0 */
    COMPARE_UNKNOWN,   /* no pair has the figure on both sides */
};
extern const char *const compare_verdict_names[];

/* One figure. Numbers that do not exist are nan. */
struct compare_metric {
    const char *key;   /* as in the results, whose text it is */
    size_t pairs;      /* those in which both sides have it; the figures are means over them */
    double a, b, difference; /* B - A */
    double relative;   /* difference / |a| */
    double half;       /* half the width of the interval of the difference: paired t. nan: one pair */
    double half_a, half_b; /* the same of A and of B alone */
    enum compare_verdict verdict;
};

/* Differences B - A of the same request in both, nanoseconds. */
enum { COMPARE_TTFT, COMPARE_E2E, COMPARE_TIMES };
extern const char *const compare_time_names[COMPARE_TIMES];
struct compare_differences {
    size_t count;      /* requests that got there in both */
    double mean;
    double half;       /* of the mean: over replications, or over batches of one run; nan: none */
    size_t groups;     /* how many means the interval is made from */
    int64_t p5, p25, p50, p75, p95; /* nearest rank */
    size_t b_lower, same, b_higher;
};
struct compare_requests {
    uint64_t both, only_a, only_b; /* requests that arrived in the window, by who finished them */
    struct compare_differences times[COMPARE_TIMES];
};

/* All that one table shows. */
struct compare_group {
    char label[512];             /* what sets it apart from the other groups; "" when there is one */
    struct compare_pair *pairs;  /* one for each replication */
    size_t count;
    const struct compare_requests *requests; /* NULL: results without requests */
};

/* What is said before all groups, and how. */
struct compare_head {
    const char *a, *b;     /* what the user called them */
    double confidence;
    bool drawn;            /* pairs are replications; else there is one for each trace */
    const struct opt_list *keys; /* figures for the table; count 0: the usual ones; "all" */
};

/* Every figure that is a number in at least one result, in the order of the results; release with free(). -1 with err. */
int compare_metrics(const struct compare_pair *pairs, size_t count, double confidence, struct compare_metric **metrics,
                    size_t *metric_count, struct err *err);

/* Fills *d from differences in the order of the requests; `starts` has count + 1 places: replication r is [starts[r],
 * starts[r + 1]). Sorts the differences. One replication: batch means, see docs/compare.md. */
int compare_differences(struct compare_differences *d, int64_t *differences, const size_t *starts, size_t replications,
                        double confidence, struct err *err);

/* For people, and for programs: one object. -1 with err. */
int compare_print_table(const struct compare_head *head, const struct compare_group *group, FILE *out, struct err *err);
int compare_print_json(const struct compare_head *head, const struct compare_group *group, FILE *out, struct err *err);

/* A number as people read it, in the unit of its key. */
void compare_number(const char *key, double value, bool sign, char *out, size_t bytes);

/* Runs A and B. `sets`: the options of each (compare_variant). Prints. A status of the command or -1 with err. */
int compare_run(const struct optset *set, struct optset *const sets[2], struct compare_head *head, struct err *err);
/* Pairs two files of results. */
int compare_files(const struct optset *set, const char *const paths[2], struct compare_head *head, struct err *err);

/* Whether an argument is meant as settings, POLICY or POLICY,OPTION=VALUE,...; else it names a file. */
bool compare_is_variant(const char *text);
/* The set's options with these settings. NULL with err. */
struct optset *compare_variant(const struct optset *set, const char *text, struct err *err);

#endif
