# shellcheck shell=sh disable=SC2153,SC2154
claim 3 'a 70B model takes 76.2 GB in BF16, 44.5 GB with FP8 weights, 31.8 GB with FP8 KV, at 1,200, 2,100 and 3,450 tokens/s'
input MEMORY '76.2 44.5 31.8'
input SPEEDS '1200 2100 3450'
input MODEL llama-3-70b
input GPU h200
input RANKS '1 2 3 4 5 6 7 8'
input SPEED_RANKS '2 4 8'

# Reported memory is taken as GB of one GPU.
# On k GPUs each holds weights(k) and a cache X; with FP8 KV half of X for the same tokens. So three figures give X three times.
gb() { calc "$1 / 1e9"; }
for k in $RANKS; do
    plan "$k-16" --model "$MODEL" --gpu "$GPU" --tensor-parallel-size "$k"
    plan "$k-8" --model "$MODEL" --gpu "$GPU" --tensor-parallel-size "$k" --quantization fp8
    echo "$k $(gb "$(values "$k-16" 'memory>weights>bytes')") $(gb "$(values "$k-8" 'memory>weights>bytes')")"
done | awk -v memory="$MEMORY" '
    BEGIN { split(memory, m, " ") }
    {
        a = m[1] - $2; b = m[2] - $3; c = 2 * (m[3] - $3)
        low = a < b ? a : b; if (c < low) low = c
        high = a > b ? a : b; if (c > high) high = c
        printf "%d %.1f %.1f %.1f %.3f\n", $1, a, b, c, (low <= 0 ? 9 : (high - low) / high)
    }' >"$out/3.memory"
best=$(sort -s -k5,5n "$out/3.memory" | head -n 1)
apart=$(echo "$best" | awk '{ print $5 }')

# Tokens/s of a full server in the three configurations, on k GPUs.
for k in $SPEED_RANKS; do
    for types in 'bf16 auto' 'fp8 auto' 'fp8 fp8'; do
        # shellcheck disable=SC2086 # two words
        set -- $types
        quantized=''
        if [ "$1" != bf16 ]; then quantized="--quantization $1"; fi
        # shellcheck disable=SC2086
        sweep "$k-$1-$2" --trace 'gen:requests=1500,arrivals=none,prompt-tokens=500,output-tokens=300' --model "$MODEL" --gpu "$GPU" \
            --tensor-parallel-size "$k" --step-time roofline $quantized --kv-cache-dtype "$2"
        values "$k-$1-$2" output_tokens_per_s
    done | tr '\n' ' ' | awk -v k="$k" '{ printf "%d %.2f %.2f\n", k, $2 / $1, $3 / $1 }'
done >"$out/3.speed"
published=$(echo "$SPEEDS" | awk '{ printf "%.2f %.2f", $2 / $1, $3 / $1 }')
near=$(awk -v p="$published" 'BEGIN { split(p, r, " ") }
    function off(a, b) { return a > b ? a / b - 1 : b / a - 1 }
    { d = off($2, r[1]); e = off($3, r[2]); if (e > d) d = e; if (NR == 1 || d < best) best = d }
    END { print best }' "$out/3.speed")

finds "nearest is $(echo "$best" | awk '{ printf "%d GPUs, where the three leave %s, %s and %s GB for the same cache", $1, $2, $3, $4 }'). Speeds against BF16 of a full server: $(awk '{ printf "%stimes %s and %s on %d GPUs", (NR > 1 ? ", " : ""), $2, $3, $1 }' "$out/3.speed"); claimed: $(echo "$published" | sed 's/ / and /')"
rule 'memory is consistent when for some number of GPUs the three figures give the same cache within 10 %; speed when for some number both ratios come within 15 %. True when both, false when neither, else it depends'
memory=0 speed=0
holds "$apart <= 0.10" && memory=1
holds "$near <= 0.15" && speed=1
case $memory$speed in
11) verdict true ;;
00) verdict 'false: no number of GPUs is consistent with the memory or with the speeds' ;;
10) verdict 'depends: consistent in memory, not in speed' ;;
01) verdict 'depends: consistent in speed, not in memory' ;;
esac
