#!/bin/sh
# manual_pages.sh PROGRAM FOLDER: writes the program's manual pages, pagesim.1 and one for each command and
# part of a command, as the program's own option table has them.
set -eu
program=$1 folder=$2

rm -rf "$folder"
mkdir -p "$folder"

# The names in a page's list of commands: `.BR pagesim\-trace\-gen (1)`.
names() {
    sed -n '/^\.SH SEE ALSO/,$d; s/^\.BR pagesim\\-\([a-z\\-]*\) (1)$/\1/p' "$1" | tr -d '\134' # backslashes
}

"$program" help --man >"$folder/pagesim.1"
for name in $(names "$folder/pagesim.1"); do
    "$program" help --man "$name" >"$folder/pagesim-$name.1"
    for part in $(names "$folder/pagesim-$name.1"); do
        "$program" help --man "$name" "${part#"$name"-}" >"$folder/pagesim-$part.1"
    done
done
