# shellcheck shell=sh disable=SC2153,SC2154
claim 2 'FP8 KV halves KV bytes and doubles capacity'
input KV fp8
input MODEL llama-3-8b
input GPU l40s
input TRACE preset:azure-conv
input REQUESTS 1500

plan 16 --model "$MODEL" --gpu "$GPU"
plan 8 --model "$MODEL" --gpu "$GPU" --kv-cache-dtype "$KV"
# The same tenth of each pool, so that requests press.
sweep run16 --trace "$TRACE" --max-requests "$REQUESTS" --arrival-speedup-ratio 4 --kv-bytes-per-token "$(values 16 bytes_per_token)" \
    --kv-cache-memory-bytes "$(calc "$(values 16 available_kv_bytes) / 20" %.0f)"
sweep run8 --trace "$TRACE" --max-requests "$REQUESTS" --arrival-speedup-ratio 4 --kv-bytes-per-token "$(values 8 bytes_per_token)" \
    --kv-cache-memory-bytes "$(calc "$(values 8 available_kv_bytes) / 20" %.0f)"

bytes=$(calc "$(values 8 bytes_per_token) / $(values 16 bytes_per_token)")
capacity=$(calc "$(values 8 kv_tokens) / $(values 16 kv_tokens)")
# Empty slots inside what is held, of one pool of requests: in slots, and in bytes.
empty() { calc "($(values "$1" states.internal) + $(values "$1" states.reserved)) * $(values "$1" pool_slots) / $(values "$1" running.mean)"; }
slots16=$(empty run16) slots8=$(empty run8)
finds "bytes a token times $(calc "$bytes" %.3f), KV tokens times $(calc "$capacity" %.3f). The empty part of blocks is $(calc "$slots16" %.1f) and $(calc "$slots8" %.1f) slots a running \
request: the same in tokens, and $(calc "$slots16 * $(values 16 bytes_per_token) / 1024" %.0f) and $(calc "$slots8 * $(values 8 bytes_per_token) / 1024" %.0f) KiB. \
On $(calc "$(values run16 running.mean)" %.1f) and $(calc "$(values run8 running.mean)" %.1f) requests at once"
rule 'true when a token takes between 0.49 and 0.51 of the bytes and the tokens of the pool are 1.98 to 2.02 times as many; false when neither; else it depends'
halves=0 doubles=0
holds "$bytes > 0.49 && $bytes < 0.51" && halves=1
holds "$capacity > 1.98 && $capacity < 2.02" && doubles=1
case $halves$doubles in
11) verdict true ;;
00) verdict false ;;
10) verdict 'depends: halves the bytes, but capacity does not double' ;;
01) verdict 'depends: doubles capacity, but does not halve the bytes' ;;
esac
