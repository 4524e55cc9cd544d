/* Manual pages, made from the option table: roff with the macros of man(7). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sim/command.h"

/* One text within a line: backslashes and hyphens escaped, so that options can be copied from the page. */
static void print_text(const char *text)
{
    if (*text == '.' || *text == '\'') printf("\\&");
    for (; *text; text++) {
        switch (*text) {
        case '\\': printf("\\e"); break;
        case '-': printf("\\-"); break;
        case '`': printf("\\(ga"); break;
        case '\'': printf("\\(aq"); break;
        case '^': printf("\\(ha"); break;
        case '~': printf("\\(ti"); break;
        default: putchar(*text);
        }
    }
}

static void print_upper(const char *text)
{
    for (; *text; text++) printf(*text == '-' ? "\\-" : "%c", toupper((unsigned char)*text));
}

/* Notes are laid out for a terminal: an empty line ends a paragraph, an indented line stands as it is. */
static void print_notes(const char *notes)
{
    bool verbatim = false;
    printf(".SH NOTES\n");
    for (const char *line = notes; *line;) {
        int bytes = (int)strcspn(line, "\n");
        char copy[512];
        bool indented = *line == ' ';
        if (indented != verbatim && bytes > 0) {
            printf(indented ? ".PP\n.nf\n" : ".fi\n.PP\n");
            verbatim = indented;
        }
        snprintf(copy, sizeof copy, "%.*s", bytes, line);
        if (bytes > 0) {
            print_text(copy);
            printf("\n");
        } else if (!verbatim && line[1] && line[1] != ' ') {
            printf(".PP\n");
        }
        line += bytes;
        if (*line == '\n') line++;
    }
    if (verbatim) printf(".fi\n");
}

static void print_option(const struct option_spec *spec)
{
    char text[COMMAND_OPTION_TEXT_BYTES];
    printf(".TP\n\\fB\\-\\-%s", spec->kind == OPT_BOOL ? "[no\\-]" : "");
    print_text(spec->name);
    printf("\\fR");
    if (command_option_takes_value(spec)) {
        printf(" \\fI");
        print_text(spec->unit);
        printf("\\fR");
    }
    printf("\n");
    command_option_text(spec, text, sizeof text);
    print_text(text);
    printf("\n");
}

static void print_options(uint32_t command)
{
    bool any = false;
    for (int section = 0; section < OPT_SECTIONS; section++) {
        bool titled = false;
        for (size_t i = 0; i < option_count(); i++) {
            const struct option_spec *spec = option_at(i);
            if (!(spec->commands & command) || (int)spec->section != section) continue;
            if (!any) printf(".SH OPTIONS\nDefaults stand in brackets. The same names serve in a configuration file.\n");
            if (!titled) {
                printf(".SS ");
                print_text(option_section_title(spec->section));
                printf("\n");
            }
            any = titled = true;
            print_option(spec);
        }
    }
}

static void print_title(const char *name, const char *summary)
{
    printf(".TH ");
    print_upper(name);
    printf(" 1 \"" PAGESIM_DATE "\" \"pagesim " PAGESIM_VERSION "\" \"pagesim manual\"\n.SH NAME\n");
    print_text(name);
    printf(" \\- ");
    print_text(summary);
    printf("\n");
}

static void print_status(bool has_conditions)
{
    printf(".SH EXIT STATUS\n"
           ".TP\n.B 0\ndone\n"
           ".TP\n.B 1\nfailed: no memory, or an output could not be written\n"
           ".TP\n.B 2\nusage: an option or argument is wrong\n"
           ".TP\n.B 3\nbad input: the message names file, line and field\n");
    if (has_conditions) printf(".TP\n.B 4\na condition given with \\fB\\-\\-fail\\-if\\fR held\n");
}

#define PAGE_NAME_BYTES 192

/* "trace gen" -> "pagesim-trace-gen" */
static void page_name(char *out, size_t bytes, const char *words)
{
    snprintf(out, bytes, "pagesim%s%s", *words ? "-" : "", words);
    for (char *c = out; *c; c++)
        if (*c == ' ') *c = '-';
}

static void print_entry(const char *words, const char *summary)
{
    char page[PAGE_NAME_BYTES];
    page_name(page, sizeof page, words);
    printf(".TP\n.BR ");
    print_text(page);
    printf(" (1)\n");
    print_text(summary);
    printf("\n");
}

void command_man(const struct command *command, const char *words)
{
    char page[PAGE_NAME_BYTES];
    page_name(page, sizeof page, words);
    print_title(page, command->summary);
    printf(".SH SYNOPSIS\n.B pagesim ");
    print_text(words);
    printf("\n");
    print_text(command->usage);
    printf("\n.SH DESCRIPTION\n%c", toupper((unsigned char)command->summary[0]));
    print_text(command->summary + 1);
    printf(".\n");
    if (command->many)
        printf(".PP\nOptions above \\(lqChecks\\(rq may hold lists, \\fB\\-\\-block\\-size 1,16,128\\fR: every combination is "
               "one simulation.\n");
    for (const struct command *const *part = command->parts; part && *part; part++) {
        char both[64];
        snprintf(both, sizeof both, "%s %s", words, (*part)->name);
        print_entry(both, (*part)->summary);
    }
    print_options(command->options);
    if (command->notes) print_notes(command->notes);
    print_status(option_find(command->options, "fail-if") != NULL);
    printf(".SH SEE ALSO\n.BR pagesim (1)\n");
}

void command_man_all(void)
{
    print_title("pagesim", "simulates how an LLM server allocates its KV cache");
    printf(".SH SYNOPSIS\n.B pagesim\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH DESCRIPTION\n");
    print_text(COMMAND_PURPOSE);
    printf("\n.SH COMMANDS\n");
    for (size_t i = 0; i < command_count(); i++)
        print_entry(command_at(i)->name, command_at(i)->summary);
    printf(".TP\n\\fBhelp\\fR \\fICOMMAND\\fR\nthe options of a command, with defaults and units\n"
           ".TP\n\\fBhelp \\-\\-man\\fR [\\fICOMMAND\\fR]\nthe command's manual page, as roff\n"
           ".TP\n.B help \\-\\-completion bash\nwhat bash needs to complete commands, options and their values\n"
           ".TP\n.B \\-\\-version\nthe version\n");
    print_status(true);
    printf(".SH EXAMPLES\nWhere the memory of one simulated server goes:\n.PP\n.nf\n"
           "    pagesim run preset:azure\\-conv \\-\\-num\\-gpu\\-blocks\\-override 4000\n.fi\n.PP\n"
           "Policies and block sizes over all cores, with plots:\n.PP\n.nf\n"
           "    pagesim sweep trace.jsonl \\-\\-policy static,dynamic,prefix \\e\n"
           "        \\-\\-block\\-size 1,16,128 \\-\\-output results.jsonl \\-\\-plot plots/\n.fi\n");
}
