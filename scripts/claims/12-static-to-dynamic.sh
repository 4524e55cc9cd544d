# shellcheck shell=sh disable=SC2153,SC2154
claim 12 'the older allocator was static, the newer is dynamic with prefix caching'
input OLDER static
input NEWER prefix
input TRACE preset:mooncake-conversation
input POOL_TOKENS 300000
input REQUESTS 1500

sweep both --trace "$TRACE" --max-requests "$REQUESTS" --policy "$OLDER,$NEWER" --pool-tokens "$POOL_TOKENS"
values both policy running.mean internal_fragmentation hit_rate_tokens output_tokens_per_s ttft_ns.p50 >"$out/12.cells"
of() { awk -v p="$1" -v c="$2" '$1 == p { print $c }' "$out/12.cells"; }
percent() { case $1 in null) echo 0 ;; *) calc "100 * $1" %.1f ;; esac; }

describe() {
    echo "$1: $(calc "$(of "$1" 2)" %.1f) requests run at once, $(percent "$(of "$1" 3)") % of the held memory is wasted, \
$(percent "$(of "$1" 4)") % of prompt tokens hit, $(calc "$(of "$1" 5)" %.0f) output tokens/s, TTFT p50 $(calc "$(of "$1" 6) / 1e9" %.1f) s"
}
finds "$(describe "$OLDER"); $(describe "$NEWER")"
rule 'as a statement about what the two do: true when the newer runs more requests at once, wastes less inside what is held, and delivers more tokens/s; false when none of the three; else it depends'
score=0
if holds "$(of "$NEWER" 2) > $(of "$OLDER" 2)"; then score=$((score + 1)); fi
if holds "$(of "$NEWER" 3) < $(of "$OLDER" 3)"; then score=$((score + 1)); fi
if holds "$(of "$NEWER" 5) > $(of "$OLDER" 5)"; then score=$((score + 1)); fi
case $score in
3) verdict true ;;
0) verdict false ;;
*) verdict "depends: $score of the three" ;;
esac
