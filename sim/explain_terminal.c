/* The terminal: what it can show, and single keys from it. */
#include <ctype.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "sim/explain.h"

/* --- what it can show ---------------------------------------------------------------------------- */

static unsigned number_or(const char *text, unsigned otherwise)
{
    char *end;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    return value > 0 && value <= 10000 && *end == '\0' ? (unsigned)value : otherwise;
}

/* A terminal says its size; COLUMNS and LINES win, so that a document can choose. */
static void measure(struct explain_screen *s)
{
    struct winsize size = {0};
    s->columns = 80;
    s->rows = 24;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        s->columns = size.ws_col;
        s->rows = size.ws_row;
    } else {
        s->columns = number_or(getenv("COLUMNS"), s->columns);
        s->rows = number_or(getenv("LINES"), s->rows);
    }
    if (s->columns < 40) s->columns = 40;
    if (s->rows < 10) s->rows = 10;
}

void explain_screen_init(struct explain_screen *s)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    /* In a locale of this thread alone: numbers are printed and read as in C. */
    locale_t locale = newlocale(LC_CTYPE_MASK, "", NULL);
    *s = (struct explain_screen){.out = stdout};
    s->utf8 = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    if (locale) freelocale(locale);
    s->color = isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    measure(s);
}

/* --- keys, one by one ------------------------------------------------------------------------------ */

static struct termios cooked;
static volatile sig_atomic_t raw, resized;
static sigset_t mask_before;

static void set_raw(void)
{
    struct termios now = cooked;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    raw = 1;
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

static void set_cooked(void)
{
    if (!raw) return;
    raw = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
}

/* The terminal as it was, then what the signal does by default. */
static void on_end(int number)
{
    set_cooked();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_stop(int number)
{
    int saved = errno;
    set_cooked();
    signal(number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL); /* stops here, and goes on here after SIGCONT */
    struct sigaction action = {.sa_handler = on_stop};
    sigaction(number, &action, NULL);
    set_raw();
    resized = 1;
    errno = saved;
}

static void on_resize(int number)
{
    (void)number;
    resized = 1;
}

static void catch_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_end};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) sigaction(ends[i], &action, NULL);
    action.sa_handler = on_stop;
    sigaction(SIGTSTP, &action, NULL);
    action.sa_handler = on_resize;
    sigaction(SIGWINCH, &action, NULL);
    /* These come only while a key is waited for, so that none is missed between a look at `resized` and the wait. */
    sigset_t later;
    sigemptyset(&later);
    sigaddset(&later, SIGTSTP);
    sigaddset(&later, SIGWINCH);
    sigprocmask(SIG_BLOCK, &later, &mask_before);
}

/* -1 with EINTR when a signal came instead; 0 at the end of the input. */
static ssize_t read_key(char *bytes, size_t count)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return ppoll(&input, 1, NULL, &mask_before) < 0 ? -1 : read(STDIN_FILENO, bytes, count);
}

/* --- commands ---------------------------------------------------------------------------------------- */

static const char help[] =
    "n, space  next instant             p  the one before\n"
    "g STEP    to a step; 7+ is its end f REQUEST  to the next event of a request\n"
    "r / R     next refusal / before    e / E  next eviction / before\n"
    "x / X     next preemption / before 0  the first instant, $  the last one\n"
    "?         this page                q  end\n"
    "Each step is seen twice: with the scheduler's decisions, and at its end (+).\n";

enum said { SAID_DRAWN, SAID_NOTHING, SAID_END, SAID_FAILED };

struct session {
    struct explain_walk *walk;
    uint64_t at;
    bool terminal;
    struct err *err;
};

static void say(const struct session *s, const char *text)
{
    fputs(text, s->walk->screen.out);
}

static enum said go(struct session *s, const struct explain_goal *goal, const char *none)
{
    if (s->terminal) say(s, "\033[H\033[2J");
    int found = explain_walk_to(s->walk, goal, &s->at, s->err);
    if (found < 0) return SAID_FAILED;
    if (found > 0) return SAID_DRAWN;
    struct explain_goal here = {.kind = GOAL_INSTANT, .number = s->at};
    if (s->terminal && explain_walk_to(s->walk, &here, &s->at, s->err) < 0) return SAID_FAILED;
    say(s, none);
    return SAID_NOTHING;
}

static enum said go_instant(struct session *s, uint64_t number)
{
    struct explain_goal goal = {.kind = GOAL_INSTANT, .number = number};
    return go(s, &goal, "There is no such instant.\n");
}

static enum said go_event(struct session *s, uint32_t events, bool backwards)
{
    struct explain_goal goal = {.kind = GOAL_EVENT, .events = events, .backwards = backwards, .from = s->at};
    return go(s, &goal, backwards ? "None before.\n" : "None behind.\n");
}

static enum said go_step(struct session *s, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long step = strtoull(text, &end, 10);
    struct explain_goal goal = {.kind = GOAL_STEP, .number = step, .end = *end == '+'};
    if (!isdigit((unsigned char)*text) || errno || end[goal.end] != '\0') {
        say(s, "Expected a step's number, 7 or 7+.\n");
        return SAID_NOTHING;
    }
    return go(s, &goal, "There is no such step.\n");
}

static enum said go_request(struct session *s, const char *text)
{
    struct explain_goal goal = {.kind = GOAL_REQUEST, .request = text, .from = s->at};
    return go(s, &goal, "It has no event behind this one.\n");
}

static enum said obey(struct session *s, char command, const char *text)
{
    const uint32_t refusals = 1u << EVENT_REFUSE | 1u << EVENT_UNSERVABLE | 1u << EVENT_DEVICE_OOM, evictions = 1u << EVENT_EVICT;
    const uint32_t preemptions = 1u << EVENT_PREEMPT | 1u << EVENT_SWAP_OUT;
    switch (command) {
    case 'n':
    case ' ':
        if (s->at + 1 < s->walk->instants) return go_instant(s, s->at + 1);
        say(s, "This is the last instant.\n");
        return SAID_NOTHING;
    case 'p':
        if (s->at > 0) return go_instant(s, s->at - 1);
        say(s, "This is the first instant.\n");
        return SAID_NOTHING;
    case '0': return go_instant(s, 0);
    case '$': return go_instant(s, s->walk->instants - 1);
    case 'g': return go_step(s, text);
    case 'f': return go_request(s, text);
    case 'r':
    case 'R': return go_event(s, refusals, command == 'R');
    case 'e':
    case 'E': return go_event(s, evictions, command == 'E');
    case 'x':
    case 'X': return go_event(s, preemptions, command == 'X');
    case 'q': return SAID_END;
    case '?': say(s, help); return SAID_NOTHING;
    default: say(s, "Not a command; ? lists them.\n"); return SAID_NOTHING;
    }
}

/* What follows g and f, typed with the terminal's own editing. */
static void read_text(struct session *s, const char *prompt, char *text, size_t bytes)
{
    set_cooked(); /* before the prompt: what is typed at it is echoed */
    say(s, prompt);
    fflush(s->walk->screen.out);
    ssize_t n = read(STDIN_FILENO, text, bytes - 1);
    set_raw();
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
}

/* Arrows and other keys that are several bytes: right and down go on, left and up back. */
static char key_of(const char *bytes, ssize_t count)
{
    if (count >= 3 && bytes[0] == '\033' && (bytes[1] == '[' || bytes[1] == 'O')) {
        if (bytes[2] == 'C' || bytes[2] == 'B') return 'n';
        if (bytes[2] == 'D' || bytes[2] == 'A') return 'p';
        return '\0';
    }
    if (bytes[0] == '\r' || bytes[0] == '\n') return 'n';
    return bytes[0] == 4 ? 'q' : bytes[0]; /* Ctrl-D */
}

static enum said at_key(struct session *s, const char *bytes, ssize_t count)
{
    char key = key_of(bytes, count), text[128] = "";
    if (key == '\0') return SAID_NOTHING;
    if (key == 'g') read_text(s, "to step: ", text, sizeof text);
    if (key == 'f') read_text(s, "request: ", text, sizeof text);
    return obey(s, key, text);
}

static int keys(struct session *s)
{
    enum said said = go_instant(s, 0);
    catch_signals();
    set_raw();
    while (said != SAID_END && said != SAID_FAILED) {
        char bytes[16];
        if (said == SAID_DRAWN) say(s, "n next, p back, g step, f request, r refusal, e eviction, ? help, q end ");
        fflush(s->walk->screen.out);
        ssize_t n = read_key(bytes, sizeof bytes);
        if (n < 0 && errno != EINTR) break;
        if (n == 0) break;
        if (resized) {
            resized = 0;
            measure(&s->walk->screen);
            said = go_instant(s, s->at);
        }
        if (n > 0) said = at_key(s, bytes, n);
    }
    set_cooked();
    say(s, "\n");
    return said == SAID_FAILED ? -1 : 0;
}

/* --- commands from a pipe or a file: one a line ----------------------------------------------------- */

static int lines(struct session *s)
{
    char line[256];
    enum said said = go_instant(s, 0);
    while (said != SAID_FAILED && said != SAID_END && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = '\0';
        const char *text = line[0] ? line + 1 : line;
        text += strspn(text, " ");
        say(s, "\n");
        said = obey(s, line[0] ? line[0] : 'n', text);
    }
    return said == SAID_FAILED ? -1 : 0;
}

int explain_interact(struct explain_walk *walk, struct err *err)
{
    struct session s = {.walk = walk, .err = err};
    s.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &cooked) == 0;
    if (!wl_can_rewind(walk->source))
        return err_set(err, ERR_USAGE, "%s can be read only once, expected a file, or --at", wl_name(walk->source));
    if (explain_walk_count(walk, err)) return -1;
    if (walk->instants == 0) return err_set(err, ERR_INPUT, "%s: no step was made: there is nothing to see", wl_name(walk->source));
    return s.terminal ? keys(&s) : lines(&s);
}
