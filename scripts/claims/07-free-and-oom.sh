# shellcheck shell=sh disable=SC2153,SC2154
claim 7 'more than 20 % of the device is free, and still CUDA is out of memory'
# A lightly loaded server: most of its pool is free or holds what can be evicted.
input MODEL llama-3-8b
input GPU h100-sxm
input UTILIZATIONS 0.90,0.95,0.98
input LATE '600MiB@5s'
input ACTIVATIONS '1 4'
input REQUESTS 200

plan start --model "$MODEL" --gpu "$GPU"
measured=$(values start 'memory>activation>bytes')
for factor in $ACTIVATIONS; do
    sweep "$factor" --trace preset:azure-code --max-requests "$REQUESTS" --model "$MODEL" --gpu "$GPU" --device-model caching \
        --gpu-memory-utilization "$UTILIZATIONS" --late-buffer "$LATE" --activation-per-token "$(calc "$factor * $measured / 2048" %.0f)"
    values "$factor" options.gpu-memory-utilization device.ooms device.first_oom_free_bytes device.first_oom_cached_bytes device.first_oom_pool_free_bytes device.total_bytes |
        sed "s/^/$factor /"
done | awk '{ free = ($3 > 0 ? ($4 + $5 + $6) / $7 : 0); printf "%s %s %d %.3f\n", $1, $2, ($3 > 0), free }' >"$out/7.cells"

all=$(wc -l <"$out/7.cells")
held=$(awk '$3 && $4 > 0.2 { n++ } END { print n + 0 }' "$out/7.cells")
finds "out of memory in $(awk '$3 { n++ } END { print n + 0 }' "$out/7.cells") of $all cells$(awk '$3 { printf "; utilization %s and activations %s times those at start-up: %.0f %% of the device was free or could be given back", $2, $1, 100 * $4 }' "$out/7.cells"). \
What is free lies inside the cache's pool, which the framework sees as one allocation"
rule 'a cell bears the claim out when a step or a late buffer fails while more than 20 % of the device is free, kept idle by the framework, or free or evictable in the pool. True in all cells, false in none, else it depends'
case $held in
"$all") verdict true ;;
0) verdict false ;;
*) verdict "depends: in $held of $all, where the room beside the pool is less than steps and late buffers take" ;;
esac
