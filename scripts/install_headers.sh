#!/bin/sh
# install_headers.sh FOLDER: the public headers of plug-ins, as <pagesim/plugin.h> finds them in one folder.
set -eu
mkdir -p "$1"
for header in sim/plugin allocator/kv_option allocator/kv_policy allocator/eviction sim/scheduler; do
    to=$1/${header##*/}.h
    sed 's|#include "[a-z]*/|#include "|' "$header.h" >"$to"
    chmod 644 "$to"
done
