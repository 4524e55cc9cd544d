#!/bin/sh
# The main job, without a download: the same requests on every allocation policy and block size, at loads that
# the pool cannot hold. `make demo` runs it.
#
#   scripts/demo.sh PROGRAM FOLDER
#
# PAGESIM_TRACE=FILE takes that trace instead of the generated ones, and PAGESIM_DEMO_OPTIONS what to
# run it with (default: its first 1000 requests, a pool of 16 GiB).
set -eu

if [ $# -ne 2 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set /d' >&2
    exit 2
fi
program=$1
folder=$2

policies=static,static-paged,jemalloc,dynamic,prefix,ideal
sizes=1,2,4,8,16,32,64,128,256,512

# Where the bytes were, what was refused and how long users waited, from a results file. Block
# sizes 1, 16 and 512 where the policy has blocks.
summary() {
    awk '
    function get(key,    at, rest) {
        at = index($0, "\"" key "\": ")
        if (at == 0) return "null"
        rest = substr($0, at + length(key) + 4)
        if (substr(rest, 1, 1) == "\"") return substr(rest, 2, index(substr(rest, 2), "\"") - 1)
        sub(/[,}].*/, "", rest)
        return rest
    }
    function percent(a) { return a == "null" ? "-" : sprintf("%.1f", 100 * a) }
    function seconds(a) { return a == "null" ? "-" : sprintf("%.2f", a / 1e9) }
    BEGIN {
        print "                       % of the pool, mean over time          refusals          first    tokens"
        print "                                                               despite          token   in cache"
        print "policy        block   live reserved unused cached  free    all   room  running  p50 s       %"
    }
    {
        policy = get("policy"); block = get("options.block-size")
        one = policy == "static" || policy == "jemalloc" || policy == "ideal"
        if (one ? block != 16 : block != 1 && block != 16 && block != 512) next
        unused = get("states.internal") + get("states.rounding") + get("states.dead")
        left = get("states.free") + get("states.stranded")
        printf "%-13s %5s %6s %8s %6s %6s %5s %6d %6d %8.1f %6s %7s\n", policy, one ? "any" : block,
            percent(get("states.live")), percent(get("states.reserved")), percent(unused),
            percent(get("states.cached")), percent(left), get("refusals.episodes"),
            get("refusals.by_class.despite_free") + get("refusals.by_class.despite_unused"),
            get("running.mean"), seconds(get("ttft_ns.p50")), percent(get("hit_rate_tokens"))
    }' "$1"
}

# load NAME TRACE OPTIONS: sweep, summary, figures.
load() {
    name=$1 trace=$2
    shift 2
    mkdir -p "$folder/$name"
    printf '\n== %s: %s %s\n\n' "$name" "$trace" "$*"
    "$program" sweep "$trace" "$@" --policy "$policies" --block-size "$sizes" \
        --output "$folder/$name/results.jsonl" --plot "$folder/$name" 2>"$folder/$name/notes.txt" || {
        cat "$folder/$name/notes.txt" >&2
        exit 1
    }
    summary "$folder/$name/results.jsonl" | tee "$folder/$name/summary.txt"
    "$program" report "$folder/$name/results.jsonl" --title "$name" --output "$folder/$name/report.html"
    if ! grep -q '"refusals.episodes": [1-9]' "$folder/$name/results.jsonl"; then
        echo "(nothing was refused: this load is not bound by memory)"
    fi
}

# one NAME TRACE OPTIONS: the balance sheet of one run, and its memory over time.
one() {
    name=$1 trace=$2
    shift 2
    printf '\n== one run of %s: %s %s\n\n' "$name" "$trace" "$*"
    "$program" run "$trace" "$@" --timeline "$folder/$name/timeline.csv" --plot "$folder/$name" \
        --oom-log "$folder/$name/oom.csv" --report "$folder/$name/run.html" >"$folder/$name/run.txt" 2>"$folder/$name/run-notes.txt" || {
        cat "$folder/$name/run-notes.txt" >&2
        exit 1
    }
    cat "$folder/$name/run.txt"
}

rm -rf "$folder"
mkdir -p "$folder"
echo "Six ways to give out the same KV cache (Llama-3-8B, 131,072 bytes a token), block sizes 1 to 512."

if [ -n "${PAGESIM_TRACE:-}" ]; then
    # shellcheck disable=SC2086 # a list of options
    set -- ${PAGESIM_DEMO_OPTIONS:---max-requests 1000 --kv-cache-memory-bytes 16GiB}
    load trace "$PAGESIM_TRACE" "$@"
    one trace "$PAGESIM_TRACE" --policy prefix "$@"
else
    echo "Each load has a pool too small for it, so that requests wait for memory; only the first few hundred"
    echo "requests of each are run."
    load azure-conv preset:azure-conv --max-requests 1000 --arrival-speedup-ratio 4 \
        --kv-cache-memory-bytes 12GiB
    load azure-code preset:azure-code --max-requests 800 --arrival-speedup-ratio 8 \
        --kv-cache-memory-bytes 6GiB
    load mooncake preset:mooncake-conversation --max-requests 200 --kv-cache-memory-bytes 40GiB
    load chat preset:shared-chat --max-requests 1000 --kv-cache-memory-bytes 2GiB
    one azure-conv preset:azure-conv --policy prefix --block-size 16 --max-requests 1000 \
        --arrival-speedup-ratio 4 --kv-cache-memory-bytes 12GiB
fi

cat <<END

unused: allocated, never to be filled. refusals: of allocations, in episodes; despite room: while enough was free, or was
allocated and held nothing. tokens in cache: of the prompts, -: no such thing. Written, for each load:
END
for name in "$folder"/*/; do
    name=${name%/}
    echo "  $name/"
    echo "    report.html    all of it as one page, to be opened in a browser"
    echo "    results.jsonl  one line for each policy and block size; summary.txt is the table above"
    printf '   '
    for figure in "$name"/*.svg; do printf ' %s' "${figure##*/}"; done
    printf '   (.png and .csv too)\n'
    [ ! -f "$name/run.txt" ] || echo "    run.html, run.txt, timeline.csv, oom.csv: one run, where its memory was, what was refused"
done
