/* Completion for bash, made from the option table. */
#include <stdio.h>
#include <string.h>

#include "allocator/eviction.h"
#include "sim/command.h"
#include "sim/engine_core.h"
#include "workloads/wl_format.h"
#include "workloads/wl_presets.h"

/* Names that the program knows, for options whose table row has no list of choices. */
static const char *policy_name(size_t i)
{
    return i < kv_registry_count() ? kv_registry_at(i)->name : NULL;
}

static const char *eviction_name(size_t i)
{
    return i < kv_eviction_count() ? kv_eviction_at(i)->name : NULL;
}

static const char *scheduler_name(size_t i)
{
    return i < scheduler_count() ? scheduler_at(i)->name : NULL;
}

static const char *format_name(size_t i)
{
    return i < wl_format_count() ? wl_format_at(i)->name : NULL;
}

static const char *preset_name(size_t i)
{
    return i < wl_preset_count() ? wl_preset_at(i)->name : NULL;
}

static const struct {
    const char *option, *before;
    const char *(*name)(size_t i);
} KNOWN[] = {
    {"policy", "", policy_name}, {"scheduler", "", scheduler_name}, {"evict", "", eviction_name},
    {"host-evict", "", eviction_name},
    {"format", "", format_name}, {"preset", "", preset_name},       {"trace", "preset:", preset_name},
};

static void print_values(const struct option_spec *spec)
{
    for (const char *c = spec->choices ? spec->choices : ""; *c; c++) putchar(*c == '|' ? ' ' : *c);
    for (size_t k = 0; !spec->choices && k < sizeof KNOWN / sizeof KNOWN[0]; k++) {
        if (strcmp(KNOWN[k].option, spec->name) != 0) continue;
        for (size_t i = 0; KNOWN[k].name(i); i++) printf("%s%s ", KNOWN[k].before, KNOWN[k].name(i));
    }
}

/* One case arm: the words of a command, and the values of its options. */
static void print_command(const struct command *command, const char *words)
{
    printf("    '%s')\n        options='", words);
    for (size_t i = 0; i < option_count(); i++) {
        const struct option_spec *spec = option_at(i);
        if (!(spec->commands & command->options)) continue;
        printf("--%s ", spec->name);
        if (spec->kind == OPT_BOOL) printf("--no-%s ", spec->name);
    }
    printf("--help'\n        case $previous in\n");
    for (size_t i = 0; i < option_count(); i++) {
        const struct option_spec *spec = option_at(i);
        if (!(spec->commands & command->options) || !command_option_takes_value(spec)) continue;
        bool files = spec->kind == OPT_PATH || spec->kind == OPT_TRACE_NAME;
        printf("        --%s) takes=%s words='", spec->name, files ? "file" : "value");
        print_values(spec);
        printf("' ;;\n");
    }
    printf("        esac ;;\n");
}

static void print_parts(const struct command *command)
{
    if (!command->parts) return;
    printf("    '%s') parts='", command->name);
    for (const struct command *const *part = command->parts; *part; part++) printf("%s ", (*part)->name);
    printf("' ;;\n");
}

void command_completion_bash(void)
{
    printf("# bash completion for pagesim " PAGESIM_VERSION ", made by `pagesim help --completion bash`\n"
           "_pagesim()\n{\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local command=${COMP_WORDS[1]} options='' words='' takes='' parts=''\n"
           "    # readline splits --name=value in three words\n"
           "    if [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
           "    if [[ $current == = ]]; then current=''; fi\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $command == help ]]; }; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W '");
    for (size_t i = 0; i < command_count(); i++) printf("%s ", command_at(i)->name);
    printf("help --version' -- \"$current\")\n        return\n    fi\n    case $command in\n");
    for (size_t i = 0; i < command_count(); i++) print_parts(command_at(i));
    printf("    esac\n"
           "    if [[ -n $parts ]]; then\n"
           "        if ((COMP_CWORD == 2)); then\n"
           "            mapfile -t COMPREPLY < <(compgen -W \"$parts\" -- \"$current\")\n"
           "            return\n        fi\n"
           "        command+=\" ${COMP_WORDS[2]}\"\n    fi\n    case $command in\n");
    for (size_t i = 0; i < command_count(); i++) {
        const struct command *command = command_at(i);
        if (!command->parts) print_command(command, command->name);
        for (const struct command *const *part = command->parts; part && *part; part++) {
            char words[64];
            snprintf(words, sizeof words, "%s %s", command->name, (*part)->name);
            print_command(*part, words);
        }
    }
    printf("    esac\n"
           "    if [[ -n $takes ]]; then\n"
           "        # lists of a sweep: complete what stands behind the last comma\n"
           "        local before=''\n"
           "        if [[ $current == *,* ]]; then before=${current%%,*},; fi\n"
           "        mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$words\" -- \"${current##*,}\")\n"
           "        if [[ $takes == file ]]; then\n"
           "            local file\n"
           "            while IFS= read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -f -- \"$current\")\n"
           "        fi\n"
           "    elif [[ $current == -* ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
           "    else\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _pagesim pagesim\n");
}
