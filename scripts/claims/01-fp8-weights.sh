# shellcheck shell=sh disable=SC2153,SC2154
claim 1 'FP8 weights alone leave the KV cache in 16 bits'
input MODEL meta-llama/Meta-Llama-3-8B
input GPU h100-sxm
input FLAGS '--quantization fp8'

plan plain --command "vllm serve $MODEL" --gpu "$GPU"
plan fp8 --command "vllm serve $MODEL $FLAGS" --gpu "$GPU"
plain=$(values plain bytes_per_token) fp8=$(values fp8 bytes_per_token)
finds "$plain bytes a token as it is, $fp8 with $FLAGS ($(values fp8 kv_cache_dtype) cache); weights $(calc "$(values plain 'memory>weights>bytes') / 1e9" %.1f) and \
$(calc "$(values fp8 'memory>weights>bytes') / 1e9" %.1f) GB"
rule 'true when a token takes as many bytes with the flags as without, false when it takes fewer'
if [ "$fp8" -lt "$plain" ]; then verdict false; else verdict true; fi
