#include "sim/element_type.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BOTH (ELEMENT_FOR_WEIGHTS | ELEMENT_FOR_CACHE)

static const struct element_spec SPECS[ELEMENT_TYPES] = {
    [ELEMENT_BF16] = {"bf16", 512, 0, BOTH, "|bfloat16|"},
    [ELEMENT_FP16] = {"fp16", 512, 0, BOTH, "|float16|half|"},
    [ELEMENT_FP32] = {"fp32", 1024, 0, BOTH, "|float32|float|"},
    [ELEMENT_FP8] = {"fp8", 256, 0, BOTH,
                     "|fp8_e4m3|fp8_e5m2|fp8_inc|float8_e4m3fn|float8_e5m2|fbgemm_fp8|ptpc_fp8|modelopt|modelopt_fp8|"
                     "w8a8_fp8|fp8_block|fp8_per_tensor|fp8_per_block|fp8_per_channel_per_token|"},
    [ELEMENT_INT8] = {"int8", 256, 0, BOTH, "|w8a8|w8a8_int8|w8a16|experts_int8|tpu_int8|llm_int8|int8_weight_only|"},
    [ELEMENT_INT4] = {"int4", 133, 0, ELEMENT_FOR_WEIGHTS,
                      "|awq|awq_marlin|gptq|gptq_marlin|marlin|w4a16|w4a16_awq|w4a16_gptq|int4_awq|moe_wna16|w4a8_awq|auto-round|"
                      "auto_round|inc|bitsandbytes|bnb|"},
    [ELEMENT_NVFP4] = {"nvfp4", 144, 0, BOTH, "|fp4|modelopt_fp4|fp4_e2m1|"},
    [ELEMENT_MXFP4] = {"mxfp4", 136, 0, ELEMENT_FOR_WEIGHTS, "|gpt_oss_mxfp4|w4a8_mxfp4_mxfp8|quark_mxfp4|"},
    [ELEMENT_BFP8] = {"bfp8", 272, 0, BOTH, "|bfloat8_b|bfp8_b|"},
    [ELEMENT_FP8_PER_HEAD] = {"fp8_per_token_head", 256, 4, ELEMENT_FOR_CACHE, "||"},
    [ELEMENT_INT8_PER_HEAD] = {"int8_per_token_head", 256, 4, ELEMENT_FOR_CACHE, "||"},
    [ELEMENT_FP8_MLA] = {"fp8_ds_mla", 256, 0, ELEMENT_FOR_CACHE, "||"},
};

const struct element_spec *element_spec(enum element_type type)
{
    return &SPECS[type];
}

static bool has_alias(const char *aliases, const char *name, size_t name_bytes)
{
    for (const char *at = aliases + 1; *at && *at != '|';) {
        const char *end = strchr(at, '|');
        if ((size_t)(end - at) == name_bytes && strncasecmp(at, name, name_bytes) == 0) return true;
        at = end + 1;
    }
    return false;
}

bool element_type_find(const char *name, enum element_use use, enum element_type *type)
{
    if (strncmp(name, "torch.", 6) == 0) name += 6;
    size_t bytes = strlen(name);
    if (bytes == 0) return false;
    for (unsigned t = 0; t < ELEMENT_TYPES; t++) {
        if (!(SPECS[t].uses & use)) continue;
        if (strcasecmp(name, SPECS[t].name) != 0 && !has_alias(SPECS[t].aliases, name, bytes)) continue;
        *type = (enum element_type)t;
        return true;
    }
    return false;
}

void element_type_names(enum element_use use, char *out, unsigned out_bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (unsigned t = 0; t < ELEMENT_TYPES && at < out_bytes; t++)
        if (SPECS[t].uses & use)
            at += (size_t)snprintf(out + at, out_bytes - at, "%s%s", at ? "|" : "", SPECS[t].name);
}

uint64_t element_row_bytes(enum element_type type, uint64_t elements)
{
    return (elements * SPECS[type].bytes_256 + 255) / 256 + SPECS[type].row_bytes;
}

unsigned __int128 element_bytes(enum element_type type, unsigned __int128 elements)
{
    return (elements * SPECS[type].bytes_256 + 255) / 256;
}

bool element_type_is_small(enum element_type type)
{
    return SPECS[type].bytes_256 < 512;
}
