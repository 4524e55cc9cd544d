#!/bin/sh
# install_headers.sh FOLDER: the public headers of plug-ins, as <pagesim/plugin.h> finds them in one folder.
set -eu
mkdir -p "$1"
for header in plugin kv_option kv_policy eviction; do
    sed 's|#include "allocator/|#include "|' "allocator/$header.h" >"$1/$header.h"
    chmod 644 "$1/$header.h"
done
