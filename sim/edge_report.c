/* The keys `device.*` of a run (docs/edge.md). */
#include <stdio.h>

#include "sim/edge_internal.h"
#include "sim/edge_report.h"

static void put(struct result *r, const char *name, uint64_t value)
{
    char key[60];
    snprintf(key, sizeof key, "device.%s", name);
    result_u64(r, key, value);
}

static void put_or_null(struct result *r, const char *name, uint64_t value, bool known)
{
    char key[60];
    snprintf(key, sizeof key, "device.%s", name);
    if (known) result_u64(r, key, value);
    else result_null(r, key);
}

void report_device(struct result *r, const struct engine *e)
{
    const struct edge *edge = e->edge;
    if (!edge) return;
    const struct edge_totals *t = &edge->totals;
    const struct edge_bytes *b = &edge->bytes;
    bool oom = t->ooms > 0;
    result_text(r, "device.model", edge->config.model == EDGE_CACHING ? "caching" : "budget");
    result_text(r, "device.boundary", edge->config.elastic ? "elastic" : "fixed");
    put(r, "total_bytes", edge->config.device_bytes);
    put(r, "context_bytes", b->context);
    put(r, "weights_bytes", b->weights);
    put(r, "residue_bytes", b->residue);
    put(r, "graphs_bytes", b->graphs);
    put(r, "pool_bytes", b->pool);
    put(r, "buffers_bytes", b->buffers);
    put(r, "activation_peak_bytes", t->activation_peak_bytes);
    put(r, "step_tokens_peak", t->step_tokens_peak);
    put(r, "cached_peak_bytes", t->cached_peak_bytes);
    put_or_null(r, "free_min_bytes", t->free_min_bytes, t->free_min_bytes != UINT64_MAX);
    put(r, "ooms", t->ooms);
    put(r, "step_ooms", t->step_ooms);
    put(r, "buffer_ooms", t->buffer_ooms);
    put(r, "aborted", t->aborted);
    put(r, "unserved", t->unserved);
    result_bool(r, "device.ended", t->ended);
    put_or_null(r, "first_oom_ns", t->first_oom_ns, oom);
    put_or_null(r, "first_oom_ask_bytes", t->first_oom_ask_bytes, oom);
    put_or_null(r, "first_oom_free_bytes", t->first_oom_free_bytes, oom);
    put_or_null(r, "first_oom_cached_bytes", t->first_oom_cached_bytes, oom);
    put_or_null(r, "first_oom_pool_free_bytes", t->first_oom_pool_free_bytes, oom);
    put(r, "lent_peak_bytes", t->lent_peak_bytes);
    result_ratio(r, "device.lent_mean_bytes", t->lent_byte_time, t->step_time);
    put(r, "lend_preemptions", t->lend_preemptions);
}

/* --- for people ----------------------------------------------------------------------------- */

static double mib(const struct result *r, const char *name)
{
    char key[60];
    double value;
    snprintf(key, sizeof key, "device.%s", name);
    const struct result_entry *entry = result_find(r, key);
    return entry && result_number(entry, &value) ? value / 1048576 : 0;
}

static uint64_t count(const struct result *r, const char *name)
{
    char key[60];
    snprintf(key, sizeof key, "device.%s", name);
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind == RESULT_U64 ? entry->u64 : 0;
}

void report_device_lines(const struct result *r, FILE *out)
{
    const struct result_entry *model = result_find(r, "device.model"), *boundary = result_find(r, "device.boundary");
    if (!model || !boundary) return;
    fprintf(out, "device               %.1f MiB, %s, boundary %s: context %.1f, weights %.1f, residue %.1f, graphs %.1f, pool %.1f, "
                 "late buffers %.1f\n",
            mib(r, "total_bytes"), model->text, boundary->text, mib(r, "context_bytes"), mib(r, "weights_bytes"),
            mib(r, "residue_bytes"), mib(r, "graphs_bytes"), mib(r, "pool_bytes"), mib(r, "buffers_bytes"));
    fprintf(out, "  activations at most %.1f MiB (%llu tokens a step at most), cached at most %.1f, free at least %.1f\n",
            mib(r, "activation_peak_bytes"), (unsigned long long)count(r, "step_tokens_peak"), mib(r, "cached_peak_bytes"),
            mib(r, "free_min_bytes"));
    if (count(r, "lent_peak_bytes") > 0) {
        fprintf(out, "  lent by the pool: mean %.1f MiB, at most %.1f; %llu preemptions for it\n", mib(r, "lent_mean_bytes"),
                mib(r, "lent_peak_bytes"), (unsigned long long)count(r, "lend_preemptions"));
    }
    if (count(r, "ooms") == 0) return;
    fprintf(out, "  OUT OF MEMORY %llu times (%llu steps, %llu buffers), first at %.6f s: asked %.1f MiB, device free %.1f, "
                 "cached %.1f, while the pool had %.1f free\n",
            (unsigned long long)count(r, "ooms"), (unsigned long long)count(r, "step_ooms"),
            (unsigned long long)count(r, "buffer_ooms"), (double)count(r, "first_oom_ns") / 1e9,
            mib(r, "first_oom_ask_bytes"), mib(r, "first_oom_free_bytes"), mib(r, "first_oom_cached_bytes"),
            mib(r, "first_oom_pool_free_bytes"));
    const struct result_entry *ended = result_find(r, "device.ended");
    fprintf(out, "  %llu requests lost%s", (unsigned long long)count(r, "aborted"), ended && ended->yes ? "; the run ended there" : "");
    if (count(r, "unserved") > 0) fprintf(out, ", %llu more arrived nowhere", (unsigned long long)count(r, "unserved"));
    fputc('\n', out);
}
