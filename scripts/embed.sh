#!/bin/sh
# Prints C source that holds files as bytes, for the program to carry.
#
#   embed.sh HEADER TYPE NAME=FILE[,FILE...]...
#
# Each becomes `const struct TYPE NAME`, of HEADER; several files are joined in order, a missing list is empty.
set -eu

[ $# -ge 3 ] || { echo "usage: embed.sh HEADER TYPE NAME=FILE[,FILE...]..." >&2; exit 2; }
header=$1 type=$2
shift 2
echo "/* Made by scripts/embed.sh. */"
echo "#include \"$header\""
for pair; do
    name=${pair%%=*}
    files=$(printf '%s' "${pair#*=}" | tr ',' ' ')
    echo
    echo "static const unsigned char ${name}_bytes[] = {"
    # shellcheck disable=SC2086 # a list of files
    if [ -n "$files" ]; then cat $files | od -An -v -tx1 | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'; fi
    echo "0};"
    echo "const struct $type $name = {${name}_bytes, sizeof ${name}_bytes - 1};"
done
