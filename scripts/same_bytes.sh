#!/bin/sh
# Two builds, by different compilers or with different flags, must print the same bytes.
#
#   scripts/same_bytes.sh PROGRAM PROGRAM
set -eu

[ $# -eq 2 ] || { echo "usage: same_bytes.sh PROGRAM PROGRAM" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Everything that computes with doubles: generators, step times, averages; every policy and scheduler.
runs() {
    "$1" sweep preset:shared-chat preset:azure-conv preset:mooncake-conversation --max-requests 150 \
        --policy static,static-paged,jemalloc,dynamic,prefix,ideal --block-size 4,64 --pool-tokens 60000
    "$1" sweep preset:azure-code --max-requests 150 --policy static --reserve max,pow2,oracle,declared \
        --placement first-fit,best-fit,buddy --pool-tokens 30000 --declared-output factor:1.5
    for scheduler in v0 v1 reserve; do
        "$1" run 'gen:requests=200,arrivals=gamma:20:2,prompt=lognormal:5:1@1..2000,output=gamma:1.2:80@1..900,n=uniform:1:3,abort-ratio=0.1' \
            --scheduler "$scheduler" --policy dynamic --pool-tokens 9000 --json
    done
    "$1" run preset:shared-chat --max-requests 300 --scheduler serial --json
    "$1" trace gen --preset mooncake-conversation --requests 300
    "$1" trace stats preset:azure-code --max-requests 2000 --json
    "$1" cache preset:mooncake-conversation --max-requests 300 --capacity 500,inf --json
    "$1" run preset:azure-code --max-requests 150 --pool-tokens 30000 --policy prefix --report /dev/stdout
}

runs "$1" > "$folder/a" 2>/dev/null
runs "$2" > "$folder/b" 2>/dev/null
[ -s "$folder/a" ] || { echo "same_bytes.sh: nothing was printed" >&2; exit 1; }
cmp "$folder/a" "$folder/b"
