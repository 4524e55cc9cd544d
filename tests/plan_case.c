#include "tests/plan_case.h"

#include <string.h>

#include "tests/check.h"

static int make(struct plan_case *c, const char *text, struct err *err)
{
    char words[2048], *argv[64], *save = NULL;
    int argc = 0, rest;
    memset(c, 0, sizeof *c);
    assert_true(strlen(text) < sizeof words);
    strcpy(words, text);
    for (char *word = strtok_r(words, " ", &save); word && argc < 64; word = strtok_r(NULL, " ", &save)) argv[argc++] = word;
    c->set = optset_create(FOR_PLAN, false);
    assert_non_null(c->set);
    if (optset_args(c->set, argc, argv, &rest, err) || optset_finish(c->set, err) || options_resolve(c->set, &c->options, err) ||
        plan_input_read(&c->input, c->set, &c->options, err))
        return -1;
    plan_compute(&c->plan, &c->input);
    c->stage = &c->plan.stages[c->plan.binding];
    if (plan_trace_read(&c->trace, &c->options, c->input.block_tokens, c->input.max_model_len, err)) return -1;
    plan_find(&c->findings, &c->plan, &c->input, &c->trace);
    return 0;
}

void plan_case_make(struct plan_case *c, const char *text)
{
    struct err err = {0};
    int status = make(c, text, &err);
    check_str_eq(err.text, "");
    assert_int_equal(status, 0);
}

const char *plan_case_refused(const char *text)
{
    static struct err err;
    static struct plan_case c;
    err = (struct err){0};
    assert_int_equal(make(&c, text, &err), -1);
    optset_destroy(c.set);
    return err.text;
}

void plan_case_release(struct plan_case *c)
{
    optset_destroy(c->set);
}

bool plan_case_finds(const struct plan_case *c, const char *id)
{
    for (uint32_t i = 0; i < c->findings.count; i++)
        if (strcmp(c->findings.items[i].id, id) == 0) return true;
    return false;
}
