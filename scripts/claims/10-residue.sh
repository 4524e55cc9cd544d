# shellcheck shell=sh disable=SC2153,SC2154
claim 10 'sleep mode, or a loader that keeps the BF16 originals, cancels what FP8 saved'
input MODEL llama-3-8b
input GPU l40s
# What the loader leaves: the originals, or a number of bytes.
input RESIDUE originals

plan 16 --model "$MODEL" --gpu "$GPU"
plan 8 --model "$MODEL" --gpu "$GPU" --quantization fp8
case $RESIDUE in
originals) residue=$(values 16 'memory>weights>bytes') ;;
*) residue=$RESIDUE ;;
esac
plan residue --model "$MODEL" --gpu "$GPU" --quantization fp8 --loader-residue "$residue"
plan sleep --model "$MODEL" --gpu "$GPU" --quantization fp8 --enable-sleep-mode

tokens() { values "$1" kv_tokens | sed 's/null/0/'; }
gain=$(calc "$(tokens 8) - $(tokens 16)")
left() { calc "($(tokens "$1") - $(tokens 16)) / $gain"; }
finds "KV tokens: $(tokens 16) in BF16, $(tokens 8) with FP8 weights, $(tokens residue) when the loader leaves $(calc "$residue / 1e9" %.1f) GB, $(tokens sleep) with sleep mode, \
whose copy of the weights is in host memory"
rule 'each cancels when it leaves less than a tenth of what FP8 weights gained. True when both do, false when neither, else it depends on which'
loader=0 sleep=0
holds "$(left residue) < 0.1" && loader=1
holds "$(left sleep) < 0.1" && sleep=1
case $loader$sleep in
11) verdict true ;;
00) verdict false ;;
10) verdict 'depends: the loader that keeps originals does, sleep mode does not' ;;
01) verdict 'depends: sleep mode does, the loader does not' ;;
esac
