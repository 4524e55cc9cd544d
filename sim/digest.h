/* The digest of a cache study's per-request hits: SHA-256 of the text made of every request's hit
 * blocks in trace order, each followed by one line feed, -1 for a request that was rejected. Equal
 * digests mean equal behaviour on every request. */
#ifndef PAGESIM_DIGEST_H
#define PAGESIM_DIGEST_H

#include <sha256.h>
#include <stdint.h>

#define HIT_DIGEST_HEX_BYTES 65 /* 64 digits and the terminator */

struct hit_digest {
    SHA2_CTX context;
};

void hit_digest_begin(struct hit_digest *digest);
void hit_digest_add(struct hit_digest *digest, int64_t hit_blocks);
/* The digest so far in lower-case hex. Changes nothing: more may be added and asked again. */
void hit_digest_hex(const struct hit_digest *digest, char hex[HIT_DIGEST_HEX_BYTES]);

#endif
