/* pagesim explain at a terminal of its own: keys, colours, size, and the terminal's settings afterwards. */
#include "tests/check.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "tests/cli_run.h"

struct screen {
    int master;
    pid_t child;
    char text[1 << 16]; /* what came since the last wait_for */
    size_t bytes;
};

static void start(struct screen *s, unsigned short columns, unsigned short rows, const char *no_color)
{
    const struct winsize size = {.ws_col = columns, .ws_row = rows};
    s->bytes = 0;
    s->child = forkpty(&s->master, NULL, NULL, &size);
    assert_true(s->child >= 0);
    if (s->child > 0) return;
    const struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none); /* SIGQUIT */
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    if (no_color) setenv("NO_COLOR", no_color, 1);
    else unsetenv("NO_COLOR");
    execl(cli_program(), "pagesim", "explain", "docs/lessons/7-thrashing.jsonl", "--policy", "dynamic", "--num-gpu-blocks-override", "9", "--step-time",
          "unit", (char *)NULL);
    _exit(127);
}

/* Reads until the text is there; the test fails after 20 s. */
static void wait_for(struct screen *s, const char *text)
{
    struct pollfd ready = {.fd = s->master, .events = POLLIN};
    s->bytes = 0;
    s->text[0] = '\0';
    while (!strstr(s->text, text)) {
        assert_true(s->bytes + 1 < sizeof s->text);
        if (poll(&ready, 1, 20000) != 1) fail_msg("waited for '%s', got: %s", text, s->text);
        ssize_t n = read(s->master, s->text + s->bytes, sizeof s->text - 1 - s->bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fail_msg("ended before '%s': %s", text, s->text);
        s->bytes += (size_t)n;
        s->text[s->bytes] = '\0';
    }
}

static void type(struct screen *s, const char *keys)
{
    assert_int_equal(write(s->master, keys, strlen(keys)), strlen(keys));
}

static bool is_cooked(const struct screen *s)
{
    struct termios now;
    assert_int_equal(tcgetattr(s->master, &now), 0);
    return (now.c_lflag & (ICANON | ECHO)) == (ICANON | ECHO);
}

static int end(struct screen *s)
{
    int status;
    assert_int_equal(waitpid(s->child, &status, 0), s->child);
    close(s->master);
    return status;
}

#define PROMPT "q end "

static void keys__single_ones__go_there(void **state)
{
    struct screen s;
    (void)state;
    start(&s, 80, 24, NULL);
    wait_for(&s, PROMPT);
    check_str_has(s.text, "step 0, scheduled");
    check_str_has(s.text, "\033[38;5;"); /* colours */
    assert_false(is_cooked(&s));
    type(&s, "n");
    wait_for(&s, PROMPT);
    check_str_has(s.text, "step 0+, ended");
    type(&s, "\033[C"); /* right */
    wait_for(&s, PROMPT);
    check_str_has(s.text, "step 1, scheduled");
    type(&s, "p");
    wait_for(&s, PROMPT);
    check_str_has(s.text, "step 0+, ended");
    type(&s, "x");
    wait_for(&s, PROMPT);
    check_str_has(s.text, "request 3 preempted: request 0 needed 1 block, 0 of 8 were free");
    type(&s, "g");
    wait_for(&s, "to step: ");
    assert_true(is_cooked(&s)); /* a line with the terminal's own editing */
    type(&s, "5+\n");
    wait_for(&s, PROMPT);
    check_str_has(s.text, "step 5+, ended");
    type(&s, "?");
    wait_for(&s, "Each step is seen twice");
    type(&s, "q");
    check_i64_eq(end(&s), 0);
}

static void screen__resized__drawn_again(void **state)
{
    struct screen s;
    const struct winsize wide = {.ws_col = 140, .ws_row = 40};
    (void)state;
    start(&s, 60, 24, NULL);
    wait_for(&s, PROMPT);
    ioctl(s.master, TIOCSWINSZ, &wide);
    wait_for(&s, PROMPT);
    type(&s, "q");
    check_i64_eq(end(&s), 0);
}

static void screen__no_color__no_colours(void **state)
{
    struct screen s;
    (void)state;
    start(&s, 80, 24, "1");
    wait_for(&s, PROMPT);
    assert_null(strstr(s.text, "\033[38;5;"));
    type(&s, "q");
    check_i64_eq(end(&s), 0);
}

static void signals__end_it__terminal_as_before(void **state)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct screen s;
        start(&s, 80, 24, NULL);
        wait_for(&s, PROMPT);
        assert_false(is_cooked(&s));
        kill(s.child, numbers[i]);
        int status;
        assert_int_equal(waitpid(s.child, &status, 0), s.child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
        assert_true(is_cooked(&s));
        close(s.master);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys__single_ones__go_there),
        cmocka_unit_test(screen__resized__drawn_again),
        cmocka_unit_test(screen__no_color__no_colours),
        cmocka_unit_test(signals__end_it__terminal_as_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
