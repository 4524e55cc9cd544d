/* Element types of weights and of KV caches, and the bytes that they take.
 *
 * Sizes are exact: 256ths of a byte an element, so that types with shared scales (a block float, NVFP4, AWQ) are as exact
 * as FP8. */
#ifndef PAGESIM_ELEMENT_TYPE_H
#define PAGESIM_ELEMENT_TYPE_H

#include <stdbool.h>
#include <stdint.h>

enum element_type {
    ELEMENT_BF16,
    ELEMENT_FP16,
    ELEMENT_FP32,
    ELEMENT_FP8,
    ELEMENT_INT8,
    ELEMENT_INT4,  /* AWQ and GPTQ, groups of 128: 4 bits, a 16-bit scale and a 4-bit zero for a group */
    ELEMENT_NVFP4, /* 4 bits, an FP8 scale for 16 elements */
    ELEMENT_MXFP4, /* 4 bits, an 8-bit scale for 32 elements */
    ELEMENT_BFP8,  /* block float: 8 bits, an 8-bit exponent for 16 elements */
    ELEMENT_FP8_PER_HEAD,  /* FP8 and INT8 with a 32-bit scale for each token and head, in the cache only */
    ELEMENT_INT8_PER_HEAD,
    ELEMENT_FP8_MLA, /* fp8_ds_mla: latents in FP8 with a 32-bit scale for 128, rotary part in 16 bits; MLA only */
    ELEMENT_TYPES
};

enum element_use { ELEMENT_FOR_WEIGHTS = 1, ELEMENT_FOR_CACHE = 2 };

struct element_spec {
    const char *name;
    uint32_t bytes_256; /* 256ths of a byte an element */
    uint32_t row_bytes; /* beside a row of elements, that is, the keys or values of one token and head */
    uint32_t uses;      /* enum element_use, or-ed */
    const char *aliases; /* what vLLM, SGLang, TensorRT-LLM and Hugging Face call it, "|a|b|" */
};

const struct element_spec *element_spec(enum element_type type);
/* False when the name is unknown or has no such use. Case is ignored; a leading "torch." too. */
bool element_type_find(const char *name, enum element_use use, enum element_type *type);
/* "bf16|fp16|...": the names for a use, for messages. */
void element_type_names(enum element_use use, char *out, unsigned out_bytes);
/* Bytes of a row of `elements` (rounded up to whole bytes) with its own scale. Rows of less than 2^40 elements. */
uint64_t element_row_bytes(enum element_type type, uint64_t elements);
/* Bytes of a block of weights, without row scales, rounded up. */
unsigned __int128 element_bytes(enum element_type type, unsigned __int128 elements);
/* True for types of 8 bits or fewer. */
bool element_type_is_small(enum element_type type);

#endif
