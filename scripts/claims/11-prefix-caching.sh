# shellcheck shell=sh disable=SC2153,SC2154
claim 11 'prefix caching gives hit rates of 50 % and more and cuts TTFT by up to 78 %'
# How much of a prompt is shared, and how near the load is to what the server can do.
input SHARED_TOKENS '0 500 2000 6000'
input RATES '1 4 8'
input OWN_TOKENS 500
input REQUESTS 2000

for shared in $SHARED_TOKENS; do
    for rate in $RATES; do
        trace="gen:requests=$REQUESTS,arrivals=poisson:$rate,prompt-tokens=$OWN_TOKENS,output-tokens=100,content=ids:16"
        if [ "$shared" -gt 0 ]; then trace="$trace,prefix-groups=20,prefix-zipf=0.8,prefix-tokens=$shared"; fi
        sweep "$shared-$rate" --trace "$trace" --policy dynamic,prefix --kv-cache-memory-bytes 40GiB --max-num-batched-tokens 8192
        values "$shared-$rate" hit_rate_tokens ttft_ns.mean | tr '\n' ' ' | awk -v s="$shared" -v r="$rate" '{ print s, r, $3, 1 - $4 / $2 }'
    done
done >"$out/11.cells"

both=$(awk '$3 >= 0.5 && $4 >= 0.5 { n++ } END { print n + 0 }' "$out/11.cells")
cells=$(wc -l <"$out/11.cells")
list=$(awk '{ printf "%s%s shared tokens at %s requests/s: %.0f %% hit, TTFT -%.1f %%", (NR > 1 ? "; " : ""), $1, $2, 100 * $3, int(1000 * $4) / 10 }' "$out/11.cells")
finds "beside $OWN_TOKENS tokens of their own, $list"
rule 'a cell bears the claim out when at least half of the prompt tokens hit and the mean TTFT falls by at least half. True when all cells do, false when none, else it depends'
case $both in
"$cells") verdict true ;;
0) verdict false ;;
*) verdict "depends on sharing and load: $both of $cells cells; the largest cut is $(awk '$4 > m { m = $4 } END { printf "%.1f", int(1000 * m) / 10 }' "$out/11.cells") %" ;;
esac
