/*
 * roundtrip/test_members.c - are the full objects full?
 *
 * The codecs read and write by table, so the tables know every member there is: each must occur in
 * a file of full/ of its kind and format. A member that is added to a table and to no file fails here.
 */
#include "wire/a2a/a2a_int.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static int n_tests, n_failed;

/* ---- all files of one kind and format, in one text ---------------------------------------------------- */

static bool is_file_of(const char *name, const char *kind, const char *format)
{
    size_t k = strlen(kind), n = strlen(name);
    char end[64];
    snprintf(end, sizeof end, ".%s.json", format);
    size_t e = strlen(end);
    return strncmp(name, kind, k) == 0 && (name[k] == '+' || name[k] == '.') && n > k + e - 1 &&
           strcmp(name + n - e, end) == 0 && !strstr(name, "+unknown");
}

static void add_file(dgm_buf *b, const char *dir, const char *name)
{
    char path[1024], piece[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "r");
    size_t n;
    while (f && (n = fread(piece, 1, sizeof piece, f)) > 0)
        dgm_buf_add(b, piece, n);
    if (f)
        fclose(f);
}

static void add_files(dgm_buf *b, const char *dir, const char *kind, const char *format)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (is_file_of(e->d_name, kind, format))
            add_file(b, dir, e->d_name);
    }
    if (d)
        closedir(d);
    dgm_buf_add_char(b, '\0');
}

/* ---- the members of a table -------------------------------------------------------------------------------- */

struct search {
    const char *text;
    char missing[1000];
    const dgm_shape *seen[100];
    size_t n_seen;
};

static void look_for(struct search *s, const dgm_shape *shape)
{
    for (size_t i = 0; i < s->n_seen; i++) {
        if (s->seen[i] == shape)
            return;
    }
    if (s->n_seen < sizeof s->seen / sizeof *s->seen)
        s->seen[s->n_seen++] = shape;
    for (size_t i = 0; i < shape->n_fields; i++) {
        const dgm_field *f = &shape->fields[i];
        char quoted[64];
        if (f->flags & DGM_READ_ONLY || (f->kind == DGM_FIELD_CUSTOM && !f->of.custom->write))
            continue; /* never written */
        snprintf(quoted, sizeof quoted, "\"%.*s\"", DGM_P(dgm_field_name(f)));
        size_t n = strlen(s->missing);
        if (!strstr(s->text, quoted))
            snprintf(s->missing + n, sizeof s->missing - n, " %s.%.*s", shape->what,
                     DGM_P(dgm_field_name(f)));
        switch ((dgm_field_kind)f->kind) {
        case DGM_FIELD_OBJECT:
        case DGM_FIELD_INLINE:
        case DGM_FIELD_NEST:
        case DGM_FIELD_LIST:
        case DGM_FIELD_MAP: look_for(s, f->of.shape); break;
        default: break;
        }
    }
}

static void every_member_is_in_a_file(const char *dir, const dgm_codec *codec, dgm_object_kind kind)
{
    const dgm_shape *shape = dgm_a2a_shape(codec, kind);
    if (!shape || shape->read_instead || kind == DGM_OBJECT_INTERNAL_EVENT)
        return;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    add_files(&b, dir, dgm_object_kind_name(kind), codec->name);
    struct search s = {.text = b.p};
    look_for(&s, shape);
    bool ok = !s.missing[0];
    n_failed += !ok;
    printf("%s %d - every member of a %s in %s stands in a full object\n", ok ? "ok" : "not ok",
           ++n_tests, dgm_object_kind_name(kind), codec->name);
    if (!ok)
        printf("# in no file:%s\n", s.missing);
    dgm_buf_done(&b);
}

int main(int argc, char **argv)
{
    static const dgm_codec *const codecs[] = {&dgm_codec_a2a_10, &dgm_codec_a2a_03,
                                              &dgm_codec_a2a_03_rest};
    if (argc != 2) {
        fprintf(stderr, "usage: test_members FULL-FOLDER\n");
        return 2;
    }
    for (size_t c = 0; c < 3; c++) {
        for (int kind = 1; *dgm_object_kind_name((dgm_object_kind)kind); kind++)
            every_member_is_in_a_file(argv[1], codecs[c], (dgm_object_kind)kind);
    }
    printf("1..%d\n", n_tests);
    return n_failed != 0;
}
