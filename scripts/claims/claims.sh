#!/bin/sh
# The claims that people repeat about serving with FP8, paging and prefix caching, each put to a run.
#
#   claims.sh PROGRAM FOLDER [NUMBER...]
#
# Every NN-*.sh beside this file is a scenario: its inputs, its runs, and a rule that makes the verdict from
# what the runs find. An input can be changed from outside (NAME=VALUE in the environment; the scenario's
# first lines list them), and the verdict follows. FOLDER gets the runs' results and claims.md.
set -eu

[ $# -ge 2 ] || { echo "usage: claims.sh PROGRAM FOLDER [NUMBER...]" >&2; exit 2; }
case $1 in */*) program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;; *) program=$1 ;; esac
out=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
export program out here

[ $# -gt 0 ] || set -- 1 2 3 4 5 6 7 8 9 10 11 12 13
page=$out/claims.md.new
{
    echo '| | claim | what the run finds | verdict | rule |'
    echo '| --- | --- | --- | --- | --- |'
} >"$page"
for number; do
    script=$(printf '%s/%02d-*.sh' "$here" "$number")
    # shellcheck disable=SC2086 # a pattern
    set -- $script
    [ -f "$1" ] || { echo "claims.sh: no claim has the number $number" >&2; exit 2; }
    sh -eu -c '. "$here/lib.sh"; . "$1"; closing' claim "$1"
    cat "$out/$number.row" >>"$page"
done
mv "$page" "$out/claims.md"
