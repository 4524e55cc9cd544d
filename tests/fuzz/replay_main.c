/* Gives each named file to the fuzz target that it is linked with, so that the corpus runs in every check. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* In a block of exactly its size, so that a sanitizer sees a read beyond the end. */
static int replay(const char *path)
{
    FILE *stream = fopen(path, "rb");
    if (!stream || fseek(stream, 0, SEEK_END) != 0) return -1;
    long count = ftell(stream);
    rewind(stream);
    uint8_t *bytes = count >= 0 ? malloc(count > 0 ? (size_t)count : 1) : NULL;
    int status = -1;
    if (bytes && fread(bytes, 1, (size_t)count, stream) == (size_t)count) {
        LLVMFuzzerTestOneInput(bytes, (size_t)count);
        status = 0;
    }
    free(bytes);
    fclose(stream);
    return status;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (replay(argv[i]) != 0) {
            fprintf(stderr, "%s: cannot be read\n", argv[i]);
            return 1;
        }
    return 0;
}
