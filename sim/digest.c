#include "sim/digest.h"

#include <inttypes.h>
#include <stdio.h>

void hit_digest_begin(struct hit_digest *digest)
{
    SHA256Init(&digest->context);
}

void hit_digest_add(struct hit_digest *digest, int64_t hit_blocks)
{
    char line[24];
    int bytes = snprintf(line, sizeof line, "%" PRId64 "\n", hit_blocks);

    SHA256Update(&digest->context, (const uint8_t *)line, (size_t)bytes);
}

void hit_digest_hex(const struct hit_digest *digest, char hex[HIT_DIGEST_HEX_BYTES])
{
    SHA2_CTX copy = digest->context; /* finishing pads the state */

    SHA256End(&copy, hex);
}
