# shellcheck shell=sh disable=SC2153,SC2154
claim 4 'paging keeps external fragmentation under 4 %'
input POLICY dynamic,prefix
input BLOCK_SIZE 1,16,128,512
input TRACES 'preset:azure-conv preset:mooncake-conversation'
input REQUESTS 3000

case $POLICY in *static*) reserve='--reserve pow2' ;; *) reserve='' ;; esac

for trace in $TRACES; do
    case $trace in
    preset:mooncake*) pool=200000 speed=1 ;;
    *) pool=20000 speed=2 ;;
    esac
    # shellcheck disable=SC2086 # words
    sweep "${trace#*:}" --trace "$trace" --max-requests "$REQUESTS" --policy "$POLICY" --block-size "$BLOCK_SIZE" \
        --pool-tokens "$pool" --arrival-speedup-ratio "$speed" $reserve
    values "${trace#*:}" external_fragmentation internal_fragmentation policy options.block-size
done >"$out/4.cells"

worst=$(awk '$1 != "null" && $1 + 0 > m + 0 { m = $1 } END { print m + 0 }' "$out/4.cells")
inner=$(awk '$2 != "null" && $2 + 0 > m + 0 { m = $2 } END { print m + 0 }' "$out/4.cells")
inner16=$(awk '$4 == 16 && $2 + 0 > m + 0 { m = $2 } END { print m + 0 }' "$out/4.cells")
why=''
if holds "$worst == 0"; then why=': any block fits anywhere, so what paging leaves is internal'; fi
finds "of what is free, at most $(calc "100 * $worst" %.2f) % is out of reach of the demand that is refused; inside what is held up to \
$(calc "100 * $inner" %.2f) % is wasted ($(calc "100 * $inner16" %.2f) % at block size 16)$why"
rule 'true when stranded / (free + stranded) stays below 4 % in every cell, false when it never does, else it depends on the cell'
below=$(awk '$1 != "null" && $1 + 0 >= 0.04 { n++ } END { print n + 0 }' "$out/4.cells")
cells=$(wc -l <"$out/4.cells")
if [ "$below" -eq 0 ]; then verdict true
elif [ "$below" -eq "$cells" ]; then verdict false
else verdict "depends: $below of $cells cells are at 4 % or more"; fi
