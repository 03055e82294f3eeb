/* cli_losses.c - what a conversion lost or changed, for a person or as JSON lines. */
#include "cli.h"

/* The losses behind canonical events are in AG-UI's names, whatever the formats are. */
static const char *names_note(const dgm_loss_seen *seen)
{
    return seen->canonical ? "AG-UI " : "";
}

static void print_loss(const char *file, const dgm_loss_seen *seen)
{
    const dgm_loss *loss = seen->loss;
    char place[64] = "", times[64] = "once";
    if (seen->line)
        snprintf(place, sizeof place, ":%zu:%zu", seen->line, seen->column);
    if (seen->count > 1)
        snprintf(times, sizeof times, "%zu times", seen->count);
    dgm_cli_complain("%s%s: %s%s%s%s: %s (%s)", file, place, names_note(seen), loss->object,
                     *loss->member ? " " : "", loss->member, loss->what, times);
}

static void json_member(const char *name, const char *value, const char *behind)
{
    fprintf(stderr, "\"%s\":", name);
    dgm_cli_json_string(value, stderr);
    fputs(behind, stderr);
}

static void print_loss_json(const char *file, const dgm_loss_seen *seen)
{
    fputc('{', stderr);
    json_member("file", file, ",");
    json_member("names", seen->canonical ? "ag-ui" : "input", ",");
    json_member("object", seen->loss->object, ",");
    json_member("member", seen->loss->member, ",");
    json_member("what", seen->loss->what, ",");
    fprintf(stderr, "\"count\":%zu", seen->count);
    if (seen->line)
        fprintf(stderr, ",\"line\":%zu,\"column\":%zu", seen->line, seen->column);
    if (seen->at[0]) {
        fputc(',', stderr);
        json_member("at", seen->at, "");
    }
    fputs("}\n", stderr);
}

void dgm_cli_print_losses(const char *file, const dgm_converter *c, bool json)
{
    const dgm_loss_seen *seen;
    size_t n = dgm_converter_losses(c, &seen);
    for (size_t i = 0; i < n; i++) {
        if (json)
            print_loss_json(file, &seen[i]);
        else
            print_loss(file, &seen[i]);
    }
}
