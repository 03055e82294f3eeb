/*
 * roundtrip/test_paths.c - both paths for every message of the golden files.
 *
 *     test_paths VECTORS_DIRECTORY
 *
 * Document 001's direct function, and document 000's map, reduce, map through events, have the same result for every
 * complete message in a golden file of A2A; for an invalid one both report the same position.
 */
#define _XOPEN_SOURCE 700 /* nftw */
#include "base/err.h"
#include "vectors/compare.h"

#include <dragoman/dragoman.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t n_files, n_complete, n_pieces, n_broken, n_failed;

/* ---- one message ------------------------------------------------------------------------------------------------- */

static dgm_code long_road(const char *text, size_t n, char **ret, dgm_err *err)
{
    char *events = NULL, *compact = NULL;
    dgm_code rc =
        dgm_convert_a2a_message_to_agui_event(text, n, DGM_EVENTS_SIMPLE, &events, &n, err);
    if (!rc && events)
        rc = dgm_compact_events(events, n, &compact, &n, err);
    if (!rc && compact)
        rc = dgm_convert_agui_event_to_openai_chat(compact, n, ret, &n, err);
    dgm_free(events);
    dgm_free(compact);
    return rc;
}

/* Do the messages of the history say what the pair does? Tool messages first, unless it makes calls itself. */
static bool is_same(yyjson_val *pair, yyjson_val *history)
{
    yyjson_val *message = yyjson_arr_get(pair, 0), *tools = yyjson_arr_get(pair, 1);
    bool said = !yyjson_is_null(message), first = yyjson_obj_get(message, "tool_calls");
    size_t n = yyjson_arr_size(tools);
    compare c = {0};
    if (yyjson_arr_size(history) != n + said)
        return false;
    for (size_t i = 0; i < n; i++)
        compare_values(&c, yyjson_arr_get(history, i + (said && first)), yyjson_arr_get(tools, i));
    if (said)
        compare_values(&c, yyjson_arr_get(history, first ? 0 : n), message);
    return c.n_differences == 0;
}

static void tell(const char *path, const char *text, const char *what)
{
    n_failed++;
    printf("# %s: %s\n#   %.300s\n", path, what, text);
}

static void check_answers(const char *path, const char *text, const char *direct, const char *over)
{
    const char *fault = "";
    yyjson_doc *pair = compare_read(direct, strlen(direct), &fault);
    yyjson_doc *history = over ? compare_read(over, strlen(over), &fault) : NULL;
    yyjson_val *root = yyjson_doc_get_root(pair);
    bool says =
        !yyjson_is_null(yyjson_arr_get(root, 0)) || yyjson_arr_size(yyjson_arr_get(root, 1)) > 0;
    if (!says) {
        n_pieces++; /* an intermediate message: the direct function takes complete ones */
    } else if (!history || !is_same(root, yyjson_doc_get_root(history))) {
        tell(path, text, "the paths differ");
        printf("#   direct  %.300s\n#   through %.300s\n", direct, over ? over : "(nothing)");
    } else {
        n_complete++;
    }
    yyjson_doc_free(pair);
    yyjson_doc_free(history);
}

static void check_message(const char *path, yyjson_val *v)
{
    size_t n, n_direct;
    char *text = yyjson_val_write(v, 0, &n), *direct = NULL, *over = NULL;
    dgm_err err = {0}, long_err = {0};
    if (!text)
        return;
    dgm_code rc = dgm_convert_a2a_message_to_openai(text, n, &direct, &n_direct, &err);
    dgm_code long_rc = long_road(text, n, &over, &long_err);
    if (rc && (rc != long_rc || strcmp(err.at, long_err.at) != 0))
        tell(path, text, "one road alone says what is wrong");
    else if (rc)
        n_broken++;
    else
        check_answers(path, text, direct, over);
    dgm_free(direct);
    dgm_free(over);
    free(text);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void look_for_messages(const char *path, yyjson_val *v)
{
    yyjson_val *key, *e;
    size_t i, n;
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach (v, i, n, e)
            look_for_messages(path, e);
    }
    if (!yyjson_is_obj(v))
        return;
    if (yyjson_is_str(yyjson_obj_get(v, "role")) && yyjson_is_arr(yyjson_obj_get(v, "parts")))
        check_message(path, v);
    yyjson_obj_foreach (v, i, n, key, e)
        look_for_messages(path, e);
}

static int on_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    static char text[1 << 22];
    const char *name = path + at->base;
    if (kind != FTW_F || !strstr(name, ".a2a-") || (size_t)st->st_size >= sizeof text)
        return 0;
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    /* one value, or one on each line; invalid JSON is skipped */
    yyjson_doc *whole = compare_read(text, n, NULL);
    n_files++;
    look_for_messages(path, yyjson_doc_get_root(whole));
    for (size_t from = 0; !whole && from < n;) {
        size_t end = from + strcspn(text + from, "\n");
        yyjson_doc *line = compare_read(text + from, end - from, NULL);
        look_for_messages(path, yyjson_doc_get_root(line));
        yyjson_doc_free(line);
        from = end + 1;
    }
    yyjson_doc_free(whole);
    memset(text, 0, n);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 || nftw(argv[1], on_file, 16, FTW_PHYS)) {
        fprintf(stderr, "usage: test_paths VECTORS_DIRECTORY\n");
        return 2;
    }
    bool enough = n_complete > 100 && n_broken > 5;
    printf("# %zu files: %zu complete messages, %zu pieces, %zu broken\n", n_files, n_complete,
           n_pieces, n_broken);
    printf("%sok 1 - both paths agree on every message of the golden files "
           "[R000-22 R000-27 R000-29 R001-01]\n1..1\n",
           n_failed || !enough ? "not " : "");
    return n_failed || !enough;
}
