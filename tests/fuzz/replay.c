/*
 * replay.c - the main() of a fuzz target without a fuzzer: runs it once on every file named, and on every
 * file below every folder named. Prints TAP with one test, or ends in a sanitizer.
 */
#include "fuzz/fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static size_t n_files;
static const char *current;

/* A sanitizer ends the process: its last words should name the file. Absent without sanitizers. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void on_death(void)
{
    fprintf(stderr, "replay: that was %s\n", current ? current : "outside of a file");
}

static void die(const char *what, const char *path)
{
    fprintf(stderr, "replay: %s: ", what);
    perror(path);
    exit(1);
}

static int on_file(const char *path, const struct stat *st, int kind)
{
    uint8_t *bytes;
    FILE *f;
    if (kind != FTW_F)
        return 0;
    if (!(f = fopen(path, "rb")))
        die("cannot open", path);
    /* exactly as long as the file, so that ASan sees a read one past it */
    bytes = malloc(st->st_size ? (size_t)st->st_size : 1);
    if (!bytes || fread(bytes, 1, (size_t)st->st_size, f) != (size_t)st->st_size)
        die("cannot read", path);
    fclose(f);
    current = path;
    LLVMFuzzerTestOneInput(bytes, (size_t)st->st_size);
    current = NULL; /* ftw's; a leak is found when it is gone */
    free(bytes);
    n_files++;
    return 0;
}

int main(int argc, char **argv)
{
    int i;
    printf("1..1\n");
    fflush(stdout); /* death does not flush */
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(on_death);
    for (i = 1; i < argc; i++)
        if (ftw(argv[i], on_file, 16))
            die("cannot walk", argv[i]);
    printf("# %zu files\n", n_files);
    printf("%s 1 - the corpus runs through\n", n_files ? "ok" : "not ok");
    return n_files ? 0 : 1;
}
