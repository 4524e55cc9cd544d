/* Numbers and texts as the page shows them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/accounting.h"
#include "sim/page_internal.h"

/* A number stays beside its unit. */
#define NBSP "\u00a0"

void html_text(const char *text, FILE *out)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\'': fputs("&#39;", out); break;
        default: fputc(*text, out);
        }
    }
}

void html_count(uint64_t value, FILE *out)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) fputc(',', out);
        fputc(digits[i], out);
    }
}

void html_bytes(uint64_t bytes, FILE *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    double value = (double)bytes;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++) value /= 1024;
    fprintf(out, unit == 0 ? "%.0f" NBSP "%s" : "%.1f" NBSP "%s", value, units[unit]);
}

void html_seconds(double ns, FILE *out)
{
    if (ns >= 1e10) fprintf(out, "%.0f" NBSP "s", ns / 1e9);
    else if (ns >= 1e9) fprintf(out, "%.1f" NBSP "s", ns / 1e9);
    else if (ns >= 1e6) fprintf(out, "%.0f" NBSP "ms", ns / 1e6);
    else fprintf(out, "%.0f" NBSP "µs", ns / 1e3);
}

void html_percent(double share, FILE *out)
{
    if (share > 0 && share < 0.0005) fputs("less than 0.1" NBSP "%", out);
    else fprintf(out, "%.1f" NBSP "%%", 100 * share);
}

double page_number(const struct result *r, const char *key, double otherwise)
{
    const struct result_entry *entry = result_find(r, key);
    double value;
    return entry && result_number(entry, &value) ? value : otherwise;
}

uint64_t page_count(const struct result *r, const char *key)
{
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind == RESULT_U64 ? entry->u64 : 0;
}

const char *page_text(const struct result *r, const char *key)
{
    const struct result_entry *entry = result_find(r, key);
    return entry && entry->kind == RESULT_TEXT ? entry->text : NULL;
}

bool page_has_states(const struct result *r)
{
    return page_number(r, "states.live", -1) >= 0;
}

double page_state(const struct result *r, int state)
{
    char key[48];
    snprintf(key, sizeof key, "states.%s", state_names[state]);
    double share = page_number(r, key, 0);
    return share > 0 ? (share < 1 ? share : 1) : 0;
}

uint64_t page_whole(double value)
{
    if (!(value > 0)) return 0;
    return value < 0x1p63 ? (uint64_t)(value + 0.5) : (uint64_t)1 << 63;
}
