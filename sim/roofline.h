/* A step's duration from the shape of the model and the rates of the GPU.
 *
 * T = L*t_layer + ((W/BW)^p + (flops/F + head_flops/F_head)^p)^(1/p) + kv_bytes/BW_kv + attention_flops/F_att
 *     + activation_bytes/BW_act
 *
 * The `smooth` form fitted to steps of Llama-3 shapes measured on an H200: one set of coefficients for both shapes,
 * one for 16-bit and one for FP8 weights. Errors there: 16 bits 1.9 % in the median, 6.6 % at p95; FP8 2.1 % and
 * 10.3 %; mixed steps, held out, 5.2 and 4.3 % in the median. No all-reduce, no sampling, no scheduling time. */
#ifndef PAGESIM_ROOFLINE_H
#define PAGESIM_ROOFLINE_H

#include <stdbool.h>
#include <stdint.h>

struct step_work;

/* One rank's share of a model. Parameters of layers leave embeddings and head out. */
struct roofline_shape {
    double layers;
    double hidden;               /* width of the residual stream */
    double intermediate;         /* MLP width that one token passes: that of its experts together */
    double q_width, kv_width;    /* query heads x head size; KV heads x head size */
    double dense_parameters;     /* of all layers, read by every step */
    double expert_parameters;    /* of all routed experts of all layers; 0 without experts */
    double experts, experts_per_token; /* routed ones of a layer; 0 without experts */
    double head_parameters;      /* vocabulary x hidden, computed in 16 bits */
    double weight_bytes, expert_weight_bytes; /* bytes of a parameter: of the layers without experts, of the experts */
    double attended_width;       /* sum over layers with full attention of query heads x head size */
    double window_width;         /* the same over layers with a sliding window */
    double window_tokens;        /* 0: none */
    double kv_bytes, window_kv_bytes; /* KV bytes of one token in layers of either kind */
    double state_bytes;          /* recurrent state of one sequence, read and written by a step; 0: none */
    bool fp8_compute;            /* weights are multiplied in FP8 */
    bool fp8_kv;                 /* KV cache in 8 bits */
};

/* A GPU's data sheet against the H200's: 1 where it is one. */
struct roofline_scale {
    double bandwidth, flops_16, flops_8;
};

/* Ready to be evaluated; microseconds. */
struct roofline {
    double layers_us, power;
    double dense_us, experts_us;      /* reading the weights; those of all experts */
    double experts, experts_per_token;
    double token_us, logit_us;        /* arithmetic of one token, of one sequence's logits */
    double kv_token_us, window_kv_token_us, window_tokens, state_us;
    double pair_us, window_pair_us;
    double activation_us;             /* of one token */
};

void roofline_init(struct roofline *model, const struct roofline_shape *shape, const struct roofline_scale *scale);
/* Microseconds of a step; 0 or more, may be infinite for absurd work. With a sliding window every sequence counts as one
 * of the mean context: the work of a step is known in sums. */
double roofline_us(const struct roofline *model, const struct step_work *work);

#endif
