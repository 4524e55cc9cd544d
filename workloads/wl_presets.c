#include "workloads/wl_presets.h"

#include <string.h>

/* docs/traces.md shows how near each comes to what it imitates.
 *
 * Lengths are the three-component lognormal mixtures by maximum likelihood of the published traces'
 * lengths, clipped to the traces' ranges; gamma arrivals have the coefficient of variation
 * 1 / sqrt(shape) of the maximum-likelihood gamma fit: 1/sqrt(0.870975) = 1.07151 and
 * 1/sqrt(0.231304) = 2.07926. The code trace is burstier than any renewal process of that kind
 * (measured CV 13.2 over all gaps). */
static const struct wl_preset presets[] = {
    {
        "azure-conv", "like Azure's conversation trace of 2023 (one hour, no content)",
        "Azure public dataset, LLM inference 2023 (Splitwise, ISCA'24): fitted",
        "requests=19366,arrivals=gamma:5.53014:1.07151,"
        "prompt-tokens=lognormals:0.633253:6.27394:1.0044/0.290976:6.97729:0.0580163/"
        "0.0757712:8.31584:0.02@1..14050,"
        "output-tokens=lognormals:0.425186:4.57233:0.356815/0.295597:4.72912:1.00978/"
        "0.279217:6.00604:0.048717@1..1000",
    },
    {
        "azure-code", "like Azure's code trace of 2023 (one hour, no content)",
        "Azure public dataset, LLM inference 2023 (Splitwise, ISCA'24): fitted",
        "requests=8819,arrivals=gamma:2.5664:2.07926,"
        "prompt-tokens=lognormals:0.31468:5.53305:1.28815/0.634216:7.57175:0.636436/"
        "0.0511042:8.91074:0.02@3..7437,"
        "output-tokens=lognormals:0.0957755:1.84483:0.0746717/0.57363:2.45024:0.34325/"
        "0.330595:3.64778:0.877692@6..1899",
    },
    {
        /* Conversations arrive at 2.085/s; the first block is common to all; 85 % of later turns
         * extend the old prompt, the others keep a part of it; arrivals stand on a grid of 3 s. */
        "mooncake-conversation", "like Mooncake's conversation trace (one hour, ids of 512 tokens)",
        "Mooncake, FAST'25 release, conversation trace: fitted",
        "requests=12031,arrivals=poisson:2.085,tick=3,content=ids:512,"
        "prefix-tokens=512,prefix-mode=within,history=prompt,"
        "prompt-tokens=lognormals:0.149:6.809:0.020/0.128:7.099:0.180/0.724:9.108:0.949@891..126195,"
        "output-tokens=lognormals:0.249:3.508:1.513/0.313:5.770:0.623/0.438:6.066:0.257@1..2000,"
        "continue=0.335/0.45/0.53/0.62,think=lognormal:5:1.05,"
        "turn-tokens=lognormal:6.371:1.471,branch-ratio=0.15,branch-tokens=lognormal:7.152:1.307,"
        "context-tokens-max=128195",
    },
    {
        "shared-chat", "many chats over one system prompt, popular ones often (token-exact content)",
        "made up: a load for prefix caches, 20,000 chats drawn by Zipf's law with exponent 0.8",
        "requests=100000,arrivals=poisson:10,sessions=20000,session-zipf=0.8,prefix-tokens=256,"
        "prompt-tokens=lognormal:5.03:1@1..4096,output-tokens=lognormal:5:0.8@1..1024,context-tokens-max=8192",
    },
};

size_t wl_preset_count(void)
{
    return sizeof presets / sizeof presets[0];
}

const struct wl_preset *wl_preset_at(size_t i)
{
    return &presets[i];
}

const struct wl_preset *wl_preset_find(const char *name, struct err *err)
{
    for (size_t i = 0; i < wl_preset_count(); i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    char names[256] = "";
    for (size_t i = 0; i < wl_preset_count(); i++) {
        strncat(names, i > 0 ? ", " : "", sizeof names - strlen(names) - 1);
        strncat(names, presets[i].name, sizeof names - strlen(names) - 1);
    }
    err_set(err, ERR_USAGE, "preset: found '%s', expected one of %s", name, names);
    return NULL;
}
