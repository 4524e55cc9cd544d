# shellcheck shell=sh disable=SC2153,SC2154
claim 6 'uneven lengths lower the reuse of blocks'
# Conversations with the same mean lengths and the same sharing; only the spread of the turns differs.
input EVEN fixed
input UNEVEN 1.2
input POOLS 400000,60000
input REQUESTS 4000

# Turns of 400 new tokens in the mean: all equal, or lognormal with the given sigma and the same mean.
lengths() {
    case $1 in
    fixed) echo 400 ;;
    *) echo "lognormal:$(calc "log(400) - $1 * $1 / 2" %.6f):$1@1..16384" ;;
    esac
}
for spread in "$EVEN" "$UNEVEN"; do
    trace="gen:requests=$REQUESTS,arrivals=poisson:4,prompt-tokens=$(lengths "$spread"),output-tokens=100"
    trace="$trace,sessions=200,session-zipf=0.8,context-tokens-max=8192,content=ids:16"
    sweep "$spread" --trace "$trace" --policy prefix --pool-tokens "$POOLS" --block-size 16 --seed 1,2,3
    values "$spread" options.pool-tokens hit_rate_tokens evictions units_allocated | sed "s/^/$spread /"
done >"$out/6.cells"

# Mean over the seeds of one pool and spread.
mean() { awk -v s="$1" -v p="$2" '$1 == s && $2 == p { n++; sum += $3 } END { printf "%.6f", sum / n }' "$out/6.cells"; }
text='' lower=0 all=0
for pool in $(echo "$POOLS" | tr , ' '); do
    even=$(mean "$EVEN" "$pool") uneven=$(mean "$UNEVEN" "$pool")
    text="$text${text:+; }$pool slots: $(calc "100 * $even" %.1f) % of prompt tokens hit with even lengths, $(calc "100 * $uneven" %.1f) % with uneven ones"
    all=$((all + 1))
    if holds "$uneven < $even - 0.01"; then lower=$((lower + 1)); fi
done
finds "$text. A freed block of any request serves any other, so lengths matter only through what is evicted before it is used again"
rule 'true when the hit rate (three seeds) is lower by more than one point with uneven lengths in every pool, false when in none, else it depends on the pool'
case $lower in
"$all") verdict true ;;
0) verdict false ;;
*) verdict "depends on the pool: lower in $lower of $all" ;;
esac
