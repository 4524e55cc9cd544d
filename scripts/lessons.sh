#!/bin/sh
# Runs the commands of the lessons in docs/lessons/ and compares what they print with what stands there.
#
#   lessons.sh PROGRAM [--update]
#
# A block that begins with ```console has commands, lines that begin with "$ ", and behind each what it printed. --update
# puts what they print now into the pages. Every number in a lesson's prose must stand in a block of it, or in a file that
# it shows (```jsonl or ```ini); a number that stands nowhere is an error.
set -eu

[ $# -ge 1 ] || { echo "usage: lessons.sh PROGRAM [--update]" >&2; exit 2; }
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
update=${2:-}
cd "$(dirname "$0")/../docs/lessons"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$program" "$work/bin/pagesim"
PATH=$work/bin:$PATH
LC_ALL=C.UTF-8 COLUMNS=80 NO_COLOR=1
export PATH LC_ALL COLUMNS NO_COLOR
status=0

# The page with the outputs as they are now.
render() {
    block=''
    while IFS= read -r line; do
        case $block:$line in
        :'```console') block=console && printf '%s\n' "$line" ;;
        :'```'?*) block=other && printf '%s\n' "$line" ;;
        ?*:'```') block='' && printf '%s\n' "$line" ;;
        console:'$ '*)
            printf '%s\n' "$line"
            sh -c "${line#'$ '}" </dev/null 2>&1 || :
            ;;
        console:*) ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <"$1"
}

# Numbers of the prose that no block has.
orphans() {
    awk '
    /^```/ { inside = !inside; next }
    inside { block = block " " $0 " " }
    !inside && !/^#/ { prose = prose " " $0 " " }
    END {
        plain = block
        gsub(/,/, "", plain) # 1,024
        gsub(/,/, " ", block) # of a list
        block = plain " " block
        while (match(prose, /[0-9][0-9,.]*/)) {
            number = substr(prose, RSTART, RLENGTH)
            prose = substr(prose, RSTART + RLENGTH)
            gsub(/,/, "", number)
            sub(/\.$/, "", number)
            zeros = number ~ /[.]/ ? "0*" : ""
            if (!match(block, "(^|[^0-9.])" number zeros "([^0-9]|$)")) print number
        }
    }' "$1"
}

for page in [0-9]*.md; do
    render "$page" >"$work/page"
    if [ "$update" = --update ]; then cat "$work/page" >"$page"; fi
    if ! diff -u "$page" "$work/page"; then
        echo "lessons.sh: $page differs from what its commands print" >&2
        status=1
    fi
    missing=$(orphans "$page")
    if [ -n "$missing" ]; then
        echo "lessons.sh: $page: numbers that stand in no block: $(echo "$missing" | tr '\n' ' ')" >&2
        status=1
    fi
done
exit $status
