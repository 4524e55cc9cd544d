# shellcheck shell=sh disable=SC2153,SC2154
claim 8 'CUDA graphs cost about 10 % of memory'
input SERVERS 'llama-3-8b:rtx-4090:1 llama-3-8b:a100-40gb:1 llama-3-8b:h100-sxm:1 llama-3-70b:h100-sxm:4'
# More options of plan, such as --cuda-graph-memory of a server that captures a pool for each graph.
input OPTIONS ''

for server in $SERVERS; do
    model=${server%%:*} rest=${server#*:}
    # shellcheck disable=SC2086 # words
    plan "$model-${rest%%:*}" --model "$model" --gpu "${rest%%:*}" --tensor-parallel-size "${rest#*:}" $OPTIONS
    echo "$model ${rest%%:*} $(values "$model-${rest%%:*}" 'memory>cuda_graphs>bytes' total_bytes)"
done >"$out/8.cells"
least=$(awk 'NR == 1 || $3 / $4 < m { m = $3 / $4 } END { print m }' "$out/8.cells")
most=$(awk '$3 / $4 > m { m = $3 / $4 } END { print m }' "$out/8.cells")
finds "$(awk '{ printf "%s%s on %s: %.0f MiB, %.1f %%", (NR > 1 ? "; " : ""), $1, $2, $3 / 1048576, 100 * $3 / $4 }' "$out/8.cells"). By default the graphs measured on an H200, \
one pool for all: 70 MiB outside the allocator and 90 inside with the first, then 0.27 MiB and 2.9 KB a node for each"
rule 'true when graphs take 7 to 13 % of every device, false when less than 7 % of each, else it depends'
if holds "$least >= 0.07 && $most <= 0.13"; then verdict true
elif holds "$most < 0.07"; then verdict false
else verdict "depends: $(calc "100 * $least" %.1f) to $(calc "100 * $most" %.1f) %"; fi
