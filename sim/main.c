#include <signal.h>
#include <stdio.h>

#include "sim/command.h"
#include "sim/outfile.h"

/* The only place that prints an error and chooses the exit status. */
int main(int argc, char **argv)
{
    struct err err = {0};
    /* A reader that went away is a write error with a message, not a silent death. */
    signal(SIGPIPE, SIG_IGN);
    outfile_catch_signals();
    int status = command_main(argc, argv, &err);
    if (command_flush_stdout(&err) != 0) status = -1;
    if (err.kind != ERR_NONE) fprintf(stderr, "pagesim: %s\n", err.text);
    if (status >= 0) return status;
    return err.kind != ERR_NONE ? (int)err.kind : ERR_FAILED;
}
