/* One line that says what went wrong and where. The callee fills it, main prints it once. */
#ifndef PAGESIM_ERR_H
#define PAGESIM_ERR_H

enum err_kind {
    ERR_NONE = 0,
    ERR_FAILED = 1, /* the machine or a library failed: exit status 1 */
    ERR_USAGE = 2,  /* the command line or configuration is wrong: exit status 2 */
    ERR_INPUT = 3,  /* the data are wrong: exit status 3 */
};

struct err {
    enum err_kind kind;
    char text[1024]; /* begins with where (file:line:column: field:), lower case, no full stop */
};

/* Formats the message; returns -1 so that callers can write `return err_set(...)`. Control characters
 * and bytes outside ASCII in the result are replaced by '?', so that hostile input cannot
 * reach a terminal. The first error wins: a set err is not overwritten. err may be NULL. */
int err_set(struct err *err, enum err_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "where: " before the message that is there. */
void err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
