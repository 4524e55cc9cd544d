#include "allocator/paged.h"

extern const struct kv_policy_ops kv_policy_dynamic_ops;

/* PagedAttention: blocks on demand, reference counts, fork, copy-on-write, watermark; no caching. */

static struct kv_policy *dynamic_create(const struct kv_geometry *geometry, const struct kv_value *values,
                                        const struct kv_observer *observer, char *why, size_t why_bytes)
{
    (void)values;
    struct paged_config config = { .block_tokens = geometry->block_tokens, .null_block = true };
    return paged_create(&kv_policy_dynamic_ops, geometry, &config, observer, why, why_bytes);
}

const struct kv_policy_ops kv_policy_dynamic_ops = {
    .abi_version = KV_ABI_VERSION,
    .name = "dynamic",
    .summary = "PagedAttention: blocks on demand, shared by reference counts, copied on write",
    .source = "SOSP'23 sections 4.2-4.4; free queue and watermark of vLLM v1 with caching off",
    .description = "A pool of blocks of --block-size slots, a ring of free ones, and a block table a sequence. Admission "
                   "takes the blocks of the prompt's first chunk, growth one block when the last is full. Samples of a "
                   "request share its prompt's blocks by reference counts; a shared block is copied before it is "
                   "written. A watermark keeps blocks back at admission while something runs. Waste: the tail of the "
                   "last block, about half a block a sequence. O(1) a block: about 20 bytes are touched.",
    .create = dynamic_create,
    PAGED_CALLS,
};
