#include "sim/csv_file.h"

#include <string.h>

#include "workloads/wl_number.h"

int csv_file_open(struct csv_file *f, const char *path, const char *const *names, size_t count, struct err *err)
{
    memset(f, 0, sizeof *f);
    f->names = names;
    if (wl_stream_open(path, &f->stream, err)) return -1;
    int got = wl_stream_line(f->stream, &f->line, err);
    if (got < 0) return -1;
    if (got == 0) return err_set(err, ERR_INPUT, "%s: found an empty file, expected a header with %s", path, names[0]);
    f->line.err = err;
    uint32_t all = (uint32_t)(((uint64_t)1 << count) - 1);
    if (wl_csv_header(&f->line, names, count, all, &f->columns)) return -1;
    for (size_t i = 0; i < f->columns.count; i++) {
        if (f->columns.field[i] != WL_CSV_UNKNOWN) f->column_of[f->columns.field[i]] = (uint8_t)i;
    }
    return 0;
}

int csv_file_next(struct csv_file *f, struct err *err)
{
    int got = wl_stream_line(f->stream, &f->line, err);
    if (got <= 0) return got;
    f->line.err = err;
    return wl_csv_split(&f->line, &f->columns, &f->row) ? -1 : 1;
}

void csv_file_close(struct csv_file *f)
{
    wl_stream_close(f->stream);
    f->stream = NULL;
}

int csv_file_u64(struct csv_file *f, size_t name, uint64_t *value)
{
    return wl_csv_u64(&f->line, &f->row, f->column_of[name], f->names[name], UINT64_MAX, "a count", value);
}

int csv_file_milli(struct csv_file *f, size_t name, uint64_t *value)
{
    size_t i = f->column_of[name];
    const char *end;
    enum wl_number rc = wl_number_scaled(f->row.at[i], &end, 1000, (uint64_t)1 << 62, value);
    if (rc == WL_NUMBER_OK && end == f->row.at[i] + f->row.length[i]) return 0;
    return wl_line_unexpected(&f->line, f->row.at[i], f->names[name], "a number, 0 or more");
}

const char *csv_file_text(struct csv_file *f, size_t name)
{
    size_t i = f->column_of[name];
    char *text = f->line.text + (f->row.at[i] - f->line.text);
    text[f->row.length[i]] = '\0';
    return text;
}

int csv_file_word(struct csv_file *f, size_t name, const char *const *words, size_t count, size_t *value)
{
    size_t i = f->column_of[name];
    for (*value = 0; *value < count; ++*value) {
        const char *word = words[*value];
        if (strlen(word) == f->row.length[i] && memcmp(word, f->row.at[i], f->row.length[i]) == 0) return 0;
    }
    return wl_line_unexpected(&f->line, f->row.at[i], f->names[name], "a word that this version of the program writes");
}

void csv_write_field(const char *text, FILE *out)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}
