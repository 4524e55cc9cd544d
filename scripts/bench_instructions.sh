#!/bin/sh
# Instructions of whole runs, where the clock is too noisy: perf counts them where the machine lets it, else valgrind
# does (some 50 times slower, so the loads are short). Counts of one binary repeat within a fraction of a percent.
#
#   scripts/bench_instructions.sh PROGRAM [--json]
set -eu
program=$1
json=${2:-}

count_perf() { perf stat -x, -e instructions:u "$@" 2>&1 >/dev/null | awk -F, '$1 ~ /^[0-9]+$/ {print $1; exit}'; }
count_valgrind() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null |
        awk '/Collected/ {print $NF; exit}'
}
if [ -n "$(command -v perf)" ] && [ -n "$(count_perf "$program" --version || true)" ]; then
    count=count_perf
elif [ -n "$(command -v valgrind)" ]; then
    count=count_valgrind
else
    echo "bench_instructions.sh: found neither perf's counters nor valgrind, nothing to count with" >&2
    exit 0
fi

separator='['
# WHAT UNITS UNIT ARGUMENT...: instructions of the run in all, and for each of its units of work.
measure() {
    what=$1 units=$2 unit=$3
    shift 3
    total=$($count "$program" "$@")
    if [ "$json" = --json ]; then
        printf '%s\n  {"name": "%s", "instructions": %s, "%ss": %s}' "$separator" "$what" "$total" "$unit" "$units"
        separator=,
    else
        awk -v what="$what" -v total="$total" -v units="$units" -v unit="$unit" \
            'BEGIN {printf "%-48s %9.1f M %10.1f a %s\n", what, total / 1e6, total / units, unit}'
    fi
}

measure "256 long decodes, 256,000 tokens" 256000 token run --trace gen:requests=256,arrivals=none,prompt=64,output=1000 \
    --num-gpu-blocks-override 200000 --step-time unit
measure "the same, plain loop" 256000 token run --trace gen:requests=256,arrivals=none,prompt=64,output=1000 \
    --num-gpu-blocks-override 200000 --step-time unit --plain-loop
measure "5,000 chats with shared prefixes" 5000 request run --trace preset:shared-chat --max-requests 5000 \
    --num-gpu-blocks-override 20000 --step-time unit --step-ns 30ms
measure "10,000 short requests" 10000 request run --num-gpu-blocks-override 20000 --step-time unit \
    --trace "gen:requests=10000,arrivals=poisson:100,prompt=lognormal:4.5:0.8@1..1000,output=lognormal:3:0.8@1..300"
for case in 40-large-chat-cached 41-large-chat-uncached 42-large-mixed-tight; do
    [ -d "tests/golden/vllm-v1/$case" ] || continue
    measure "recorded case $case, reading included" 1 run run --case "tests/golden/vllm-v1/$case"
done
if [ -n "${PAGESIM_TRACES:-}" ]; then
    measure "Azure conversation, first 5,000 requests" 5000 request run --max-requests 5000 --num-gpu-blocks-override 4000 \
        --trace "$PAGESIM_TRACES/azure/AzureLLMInferenceTrace_conv.csv" --step-time unit --step-ns 30ms
    measure "Mooncake conversation, first 1,000 requests" 1000 request run --max-requests 1000 \
        --num-gpu-blocks-override 40000 --trace "$PAGESIM_TRACES/mooncake/conversation_trace.jsonl.zst" --step-time unit --step-ns 30ms
fi
[ "$json" != --json ] || printf '\n]\n'
