#include "sim/edge_options.h"

#include <stdlib.h>
#include <string.h>

#include "sim/plan.h"
#include "sim/sizes.h"

static int bad_buffer(const char *text, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "--late-buffer: found '%.60s', expected BYTES@TIME or BYTES@step:N, such as 512MiB@30s, with :torch behind it "
                   "if it is PyTorch's", text);
}

int edge_buffer_parse(struct edge_buffer *b, const char *text, struct err *err)
{
    static const char torch[] = ":torch", step[] = "step:";
    char copy[80];
    *b = (struct edge_buffer){0};
    if (strlen(text) >= sizeof copy) return bad_buffer(text, err);
    strcpy(copy, text);
    char *when = strchr(copy, '@');
    if (!when) return bad_buffer(text, err);
    *when++ = '\0';
    size_t length = strlen(when), tail = sizeof torch - 1;
    if (length > tail && strcmp(when + length - tail, torch) == 0) {
        b->framework = true;
        when[length - tail] = '\0';
    }
    b->by_step = strncmp(when, step, sizeof step - 1) == 0;
    enum size_status status = b->by_step ? size_parse_count(when + sizeof step - 1, &b->at) : size_parse_time(when, &b->at);
    if (status != SIZE_OK || size_parse_bytes(copy, &b->bytes) != SIZE_OK) return bad_buffer(text, err);
    return b->bytes > 0 && b->bytes <= (uint64_t)1 << 48 ? 0 : bad_buffer(text, err);
}

static int read_buffers(struct edge_config *edge, const struct options *o, struct err *err)
{
    if (o->late_buffers.count > EDGE_BUFFERS_MAX) {
        return err_set(err, ERR_USAGE, "--late-buffer: found %zu, expected at most %u", o->late_buffers.count,
                       EDGE_BUFFERS_MAX);
    }
    for (size_t i = 0; i < o->late_buffers.count; i++) {
        struct edge_buffer *b = &edge->buffers[edge->buffer_count++];
        if (edge_buffer_parse(b, o->late_buffers.items[i], err)) return -1;
        if (!b->framework || edge->model == EDGE_CACHING) continue;
        return err_set(err, ERR_USAGE, "--late-buffer: found ':torch', expected it with --device-model caching only");
    }
    return 0;
}

static uint64_t known(const struct plan_amount *amount)
{
    return amount->bytes == PLAN_UNKNOWN ? 0 : amount->bytes;
}

static int from_plan(struct edge_config *edge, const struct plan *plan, const struct plan_input *in, const struct options *o,
                     struct err *err)
{
    const struct plan_stage *stage = &plan->stages[plan->binding];
    if (plan->gpu_memory == PLAN_UNKNOWN) {
        return err_set(err, ERR_USAGE, "--device-model: found no device, expected --gpu or --gpu-memory with it");
    }
    unsigned __int128 weights = (unsigned __int128)known(&stage->weights) - known(&stage->offload) + stage->states_bytes;
    if (plan->gpu_memory > (uint64_t)1 << 47 || weights > (uint64_t)1 << 60) {
        return err_set(err, ERR_USAGE, "--device-model: a device or weights of more than 2^47 bytes are not simulated");
    }
    edge->device_bytes = plan->gpu_memory;
    edge->context_bytes = known(&stage->non_torch);
    edge->weights_bytes = (uint64_t)weights;
    edge->residue_bytes = known(&stage->residue);
    edge->graph_bytes = known(&stage->graphs);
    uint64_t tokens = in->max_num_batched_tokens, activation = stage->activation.bytes;
    edge->per_token_bytes = EDGE_TOKEN_BYTES;
    bool deducted = activation != PLAN_UNKNOWN && (activation > 0 || stage->activation.origin == PLAN_GIVEN);
    if (deducted && tokens > 0) edge->per_token_bytes = activation / tokens + (activation % tokens != 0);
    if (o->activation_token_bytes != OPT_UNSET) edge->per_token_bytes = o->activation_token_bytes;
    return 0;
}

int edge_from_options(struct edge_config *edge, const struct optset *set, const struct options *o, struct err *err)
{
    *edge = (struct edge_config){.model = (enum edge_model)o->device_model};
    if (edge->model == EDGE_NONE) return 0;
    struct plan *plan = malloc(sizeof *plan);
    struct plan_input *in = malloc(sizeof *in);
    int status = plan && in ? plan_input_read(in, set, o, err) : err_set(err, ERR_FAILED, "out of memory");
    if (status == 0) {
        plan_compute(plan, in);
        status = from_plan(edge, plan, in, o, err);
    }
    free(in);
    free(plan);
    edge->on_oom = (enum edge_oom)o->on_device_oom;
    edge->elastic = o->device_boundary == OPT_BOUNDARY_ELASTIC;
    edge->base_bytes = o->activation_base_bytes;
    edge->per_seq_bytes = o->activation_seq_bytes;
    edge->alloc_conf = o->device_alloc_conf;
    return status ? -1 : read_buffers(edge, o, err);
}
