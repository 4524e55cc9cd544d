#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "sim/command.h"
#include "sim/outfile.h"

/* A shell may start us with a standard stream closed (>&-). An output file would then get its number, and
 * what is printed would land in it. These stand-ins refuse to be written or read. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

/* The only place that prints an error and chooses the exit status. */
int main(int argc, char **argv)
{
    struct err err = {0};
    occupy_standard_streams();
    /* A reader that went away is a write error with a message, not a silent death. */
    signal(SIGPIPE, SIG_IGN);
    outfile_catch_signals();
    int status = command_main(argc, argv, &err);
    if (command_flush_stdout(&err) != 0) status = -1;
    if (err.kind != ERR_NONE) fprintf(stderr, "pagesim: %s\n", err.text);
    if (status >= 0) return status;
    return err.kind != ERR_NONE ? (int)err.kind : ERR_FAILED;
}
