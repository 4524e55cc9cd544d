# shellcheck shell=sh disable=SC2153,SC2154
claim 5 'block size 16 or 32 minimises internal fragmentation, and block size otherwise hardly matters'
input TRACE preset:azure-conv
input BLOCK_SIZES 1,2,4,8,16,32,64,128,256,512
input POOL_TOKENS 20000
input SPEEDUP 2
input REQUESTS 3000

sweep sizes --trace "$TRACE" --max-requests "$REQUESTS" --policy prefix --block-size "$BLOCK_SIZES" \
    --pool-tokens "$POOL_TOKENS" --arrival-speedup-ratio "$SPEEDUP"
values sizes options.block-size internal_fragmentation running.mean units_allocated output_tokens_per_s >"$out/5.cells"

least=$(awk 'NR == 1 || $2 < m { m = $2; size = $1 } END { print size }' "$out/5.cells")
at() { awk -v size="$1" -v column="$2" '$1 == size { print $column }' "$out/5.cells"; }
spread() { awk -v c="$1" 'NR == 1 || $c < low { low = $c } $c > high { high = $c } END { print high / low - 1 }' "$out/5.cells"; }
speed=$(spread 5)
finds "internal fragmentation is least at block size $least; $(calc "100 * $(at 16 2)" %.3f) % at 16, $(calc "100 * $(at 32 2)" %.3f) % at 32, \
$(calc "100 * $(awk 'END { print $2 }' "$out/5.cells")" %.1f) % at the largest. Throughput differs by $(calc "100 * $speed" %.1f) % between the sizes, \
allocator calls by a factor of $(calc "1 + $(spread 4)" %.0f)"
rule 'first half: the least internal fragmentation is at 16 or 32; second half: throughput differs by less than 2 %. True when both hold, false when neither, else it depends'
first=0 second=0
case $least in 16 | 32) first=1 ;; esac
holds "$speed < 0.02" && second=1
case $first$second in
11) verdict true ;;
00) verdict false ;;
01) verdict "depends: smaller blocks always waste less, but throughput hardly changes on this trace" ;;
10) verdict "depends: least at $least, and throughput changes" ;;
esac
