#!/bin/sh
# What the block size changes, for three kinds of load: makes the tables and plots of docs/block-size.md.
#
#   block_size.sh PROGRAM FOLDER [--update]
#
# FOLDER gets the results, tables.md and the plots. --update puts them into docs/; without it the page is
# compared with what was made, and a difference ends with status 1.
set -eu

[ $# -ge 2 ] || { echo "usage: block_size.sh PROGRAM FOLDER [--update]" >&2; exit 2; }
program=$1 out=$2 update=${3:-}
cd "$(dirname "$0")/../.."
here=scripts/block_size
page=docs/block-size.md
kernel=tests/golden/h200-step-time/decode_block_size.csv
sizes=1,2,4,8,16,32,64,128,256,512
mkdir -p "$out"

# Loads. Content is known token by token, so that what coarse blocks lose is exact. Llama-3-8B: 128 KiB a token.
# Every pool is too small for what waits, as in a server that pays for itself.
chats='gen:requests=6000,arrivals=poisson:30,prompt-tokens=lognormal:4.5:1@1..4096,output-tokens=lognormal:5:0.8@1..1024'
chats="$chats,prefix-groups=4,prefix-tokens=200,sessions=2000,session-zipf=0.8,context-tokens-max=4096,content=tokens"
documents='gen:requests=600,arrivals=poisson:2,prompt-tokens=lognormal:4.5:0.7@10..1000,output-tokens=lognormal:5.5:0.6@10..2000'
documents="$documents,prefix-groups=60,prefix-zipf=0.8,prefix-tokens=24010,content=tokens"
agents='gen:requests=3000,arrivals=poisson:4,prompt-tokens=lognormal:6:0.7@50..4000,output-tokens=lognormal:4.6:0.7@10..1000'
agents="$agents,prefix-groups=3,prefix-tokens=4000,sessions=60,session-zipf=0.3,context-tokens-max=40000,content=tokens"

sweep() {
    rm -f "$out/$1.jsonl"
    "$program" sweep --trace "$2" --policy prefix --block-size $sizes --pool-tokens "$3" --seed 1,2 \
        --output "$out/$1.jsonl" 2>"$out/$1.log" || { cat "$out/$1.log" >&2; exit 1; }
}
sweep chats "$chats" 40000
sweep documents "$documents" 200000
sweep agents "$agents" 200000

# block size, then means over the seeds: held but empty %, hit %, lost to granularity %, block calls a 1,000 computed
# tokens, output tokens/s
table() {
    awk '
    function value(key,    at, rest) {
        at = index($0, "\"" key "\": ")
        if (!at) { print "block_size: no " key > "/dev/stderr"; exit 1 }
        rest = substr($0, at + length(key) + 4)
        sub(/[,}].*/, "", rest)
        return rest
    }
    {
        size = value("options.block-size")
        if (!(size in n)) order[++count] = size
        n[size]++
        empty[size] += value("internal_fragmentation") + value("reservation_waste")
        hit[size] += value("hit_rate_tokens")
        lost[size] += value("lost_sharing.to_granularity") / value("prefix_query_tokens")
        calls[size] += 1000 * value("units_allocated") / value("scheduled_tokens")
        speed[size] += value("output_tokens_per_s")
    }
    END {
        for (i = 1; i <= count; i++) {
            s = order[i]
            printf "%d %.2f %.1f %.2f %.1f %.0f\n", s, 100 * empty[s] / n[s], 100 * hit[s] / n[s], 100 * lost[s] / n[s],
                   calls[s] / n[s], speed[s] / n[s]
        }
    }' "$out/$1.jsonl" | tee "$out/$1.rows" | awk '
    BEGIN {
        print "| block size | held, but empty % | prompt tokens hit % | lost to granularity % | blocks taken per 1,000 tokens | output tokens/s |"
        print "| --- | --- | --- | --- | --- | --- |"
    }
    { printf "| %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6 }'
}
# GB/s of decode attention at batch 256 and 8,192 tokens, 16-bit and FP8 KV; and over all measured batches and lengths the
# least and the most that FP8 gains over blocks of 16, in percent.
kernel_table() {
    awk -F, '
    function signed(x) { return x > -0.5 && x < 0.5 ? "0" : sprintf("%+.0f", x) }
    $4 !~ /^[0-9]+$/ { next }
    $3 == "fp8" { load = $5 "," $6; loads[load] = 1; fp8[load, $4] = $11 }
    $5 == 256 && $6 == 8192 { rate[$3, $4] = $11; if (!($4 in seen)) { seen[$4] = 1; order[++count] = $4 } }
    END {
        print "| block size | 16-bit KV, GB/s | FP8 KV, GB/s | FP8 against 16, all loads, % |"
        print "| --- | --- | --- | --- |"
        for (i = 1; i <= count; i++) {
            least = most = ""
            for (load in loads) {
                if (!((load, order[i]) in fp8)) continue
                gain = 100 * (fp8[load, order[i]] / fp8[load, 16] - 1)
                if (least == "" || gain < least) least = gain
                if (most == "" || gain > most) most = gain
            }
            against = order[i] == 16 ? "-" : signed(least) " to " signed(most)
            printf "| %d | %.0f | %.0f | %s |\n", order[i], rate["bf16", order[i]], rate["fp8", order[i]], against
        }
    }' "$kernel"
}
for load in chats documents agents; do table $load >"$out/$load.md"; done
kernel_table >"$out/kernel.md"
awk -F'|' 'NR > 2 { print $2 + 0, $3 + 0, $4 + 0 }' "$out/kernel.md" >"$out/kernel.rows"

for plot in waste calls; do
    gnuplot -c "$here/$plot.gp" "$out" "$out/block-size-$plot.svg"
done

# The page with the tables as they are now: what stands between <!-- NAME --> and <!-- end --> is replaced.
awk -v folder="$out" '
/^<!-- (chats|documents|agents|kernel) -->$/ {
    print
    file = folder "/" $2 ".md"
    while ((getline line < file) > 0) print line
    skipping = 1
    next
}
/^<!-- end -->$/ { skipping = 0 }
!skipping' "$page" >"$out/block-size.md"

if [ "$update" = --update ]; then
    cp "$out/block-size.md" "$page"
    cp "$out"/block-size-*.svg docs/images/
elif ! diff "$page" "$out/block-size.md"; then
    echo "block_size.sh: $page differs from what was made; --update replaces it" >&2
    exit 1
fi
echo "Made $out/block-size.md, block-size-waste.svg, block-size-calls.svg"
