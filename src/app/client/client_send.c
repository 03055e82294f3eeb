/* app/client/client_send.c - `dragoman send`: sends a message and prints the answer while it is streamed. */
#include "app/client/client_int.h"
#include "base/ids.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* ---- parts ------------------------------------------------------------------------------------------------ */

static bool read_all(const char *path, size_t max, dgm_buf *to)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    char piece[64 << 10];
    long n = -1;
    dgm_buf_init(to, max);
    while (fd >= 0 && !to->over && (n = dgm_cli_read(fd, piece, sizeof piece)) > 0)
        dgm_buf_add(to, piece, (size_t)n);
    if (fd < 0 || n < 0)
        dgm_cli_complain("cannot read %s: %s", is_stdin ? "standard input" : path, strerror(errno));
    else if (to->over)
        dgm_cli_complain("%s is larger than %zu bytes", is_stdin ? "standard input" : path, max);
    if (fd >= 0 && !is_stdin)
        close(fd);
    return fd >= 0 && n >= 0 && !to->over;
}

static const char *media_type_of(const char *name)
{
    static const char *const types[][2] = {
        {".txt", "text/plain"},      {".md", "text/markdown"},      {".html", "text/html"},
        {".csv", "text/csv"},        {".json", "application/json"}, {".pdf", "application/pdf"},
        {".png", "image/png"},       {".jpg", "image/jpeg"},        {".jpeg", "image/jpeg"},
        {".gif", "image/gif"},       {".webp", "image/webp"},       {".svg", "image/svg+xml"},
        {".mp3", "audio/mpeg"},      {".wav", "audio/wav"},         {".mp4", "video/mp4"},
        {".xml", "application/xml"}, {".yaml", "application/yaml"}, {".zip", "application/zip"},
    };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++) {
        if (strcasecmp(dot, types[i][0]) == 0)
            return types[i][1];
    }
    return "application/octet-stream";
}

static bool file_part(dgm_arena *a, const char *path, dgm_part *ret)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    dgm_buf bytes;
    bool good = read_all(path, DGM_MAX_RECORD_BYTES / 4 * 3, &bytes);
    if (good) {
        char *base64 = dgm_arena_alloc_raw(a, bytes.n / 3 * 4 + 5);
        int n = EVP_EncodeBlock((unsigned char *)base64, (unsigned char *)(bytes.p ? bytes.p : ""),
                                (int)bytes.n);
        *ret = (dgm_part){.kind = DGM_PART_RAW,
                          .content = {base64, (size_t)n},
                          .filename = dgm_str_from(name),
                          .media_type = dgm_str_from(media_type_of(name))};
    }
    dgm_buf_done(&bytes);
    return good;
}

static bool data_part(dgm_arena *a, const char *text, dgm_part *ret)
{
    const char *name = text[0] == '@' ? text + 1 : "--data";
    dgm_buf bytes;
    dgm_err err = {0};
    yyjson_val *v;
    bool good = true;
    dgm_buf_init(&bytes, DGM_MAX_RECORD_BYTES);
    if (text[0] == '@')
        good = read_all(text + 1, DGM_MAX_RECORD_BYTES, &bytes);
    else
        dgm_buf_add_str(&bytes, dgm_str_from(text));
    if (good && dgm_json_read(a, dgm_arena_dup(a, dgm_buf_str(&bytes)), DGM_MAX_RECORD_BYTES,
                              "record_bytes", &v, &err)) {
        dgm_cli_complain("%s:%zu:%zu: %s", name, err.line, err.column, err.msg);
        good = false;
    }
    if (good)
        *ret = (dgm_part){.kind = DGM_PART_DATA, .data = v};
    dgm_buf_done(&bytes);
    return good;
}

/* All words of the command line, `-` being what standard input holds. */
static bool text_part(dgm_arena *a, const dgm_cli_line *line, dgm_part *ret)
{
    dgm_buf all, input;
    bool good = true;
    dgm_buf_init(&all, DGM_MAX_RECORD_BYTES);
    for (size_t i = 1; good && i < line->n_args; i++) {
        if (i > 1)
            dgm_buf_add_char(&all, ' ');
        if (strcmp(line->args[i], "-") != 0) {
            dgm_buf_add_str(&all, dgm_str_from(line->args[i]));
            continue;
        }
        good = read_all("-", DGM_MAX_RECORD_BYTES, &input);
        while (input.n && input.p[input.n - 1] == '\n') /* as $(...) does */
            input.n--;
        dgm_buf_add_str(&all, dgm_buf_str(&input));
        dgm_buf_done(&input);
    }
    if (good && (all.over || dgm_utf8_check(dgm_buf_str(&all)) < all.n)) {
        dgm_cli_complain("the text is %s", all.over ? "too long" : "not UTF-8");
        good = false;
    }
    if (good)
        *ret = (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_arena_dup(a, dgm_buf_str(&all))};
    dgm_buf_done(&all);
    return good;
}

/* All of standard input, without the newline at its end. */
static bool input_part(dgm_arena *a, dgm_part *ret)
{
    const char *dash[] = {"", "-"};
    dgm_cli_line line = {.args = (char **)(uintptr_t)dash, .n_args = 2};
    return text_part(a, &line, ret);
}

/* A word alone is a text whose URL was forgotten. */
static bool looks_like_url(const char *text)
{
    return strpbrk(text, ":./") || strcmp(text, "localhost") == 0;
}

static int client_send_message_of(dgm_arena *a, const dgm_cli_line *line, dgm_message *ret)
{
    const char *one;
    dgm_part *parts = dgm_new_n(a, dgm_part, line->n_values + 2);
    size_t n = 0;
    if (line->n_args > 1 && !text_part(a, line, &parts[n++]))
        return DGM_CLI_FAILED;
    if (line->n_args == 1 && !looks_like_url(line->args[0]))
        return dgm_cli_refuse(line, "'%s' is not a URL: dragoman send URL TEXT", line->args[0]);
    for (size_t i = 0; (one = dgm_cli_get_nth(line, "file", i)); i++) {
        if (!file_part(a, one, &parts[n++]))
            return DGM_CLI_FAILED;
    }
    for (size_t i = 0; (one = dgm_cli_get_nth(line, "data", i)); i++) {
        if (!data_part(a, one, &parts[n++]))
            return DGM_CLI_FAILED;
    }
    size_t n_decisions = dgm_client_decision_parts(line, a, parts + n);
    if (n_decisions && !dgm_cli_get(line, "task"))
        return dgm_cli_refuse(line, "--approve and --reject need --task: the task that asks");
    n += n_decisions;
    if (!n && !isatty(STDIN_FILENO)) {
        if (!input_part(a, &parts[0]))
            return DGM_CLI_FAILED;
        n = parts[0].content.n ? 1 : 0;
    }
    if (!n)
        return dgm_cli_refuse(line,
                              "nothing to send: add TEXT, --file, --data, --approve or --reject");
    *ret = (dgm_message){.message_id = dgm_uuid7_in(a),
                         .role = DGM_ROLE_USER,
                         .task_id = dgm_str_from(dgm_cli_get(line, "task")),
                         .context_id = dgm_str_from(dgm_cli_get(line, "context")),
                         .parts = {parts, n}};
    return DGM_CLI_OK;
}

/* ---- sending ------------------------------------------------------------------------------------------------ */

static int send_message(peer *p, dgm_message *message, show *s)
{
    const dgm_cli_line *line = p->line;
    bool waits = !dgm_cli_get(line, "no-wait");
    bool streams = waits && !dgm_cli_get(line, "no-stream") &&
                   (!p->card || p->card->capabilities.streaming == DGM_TRUE);
    /* 0.3 servers have different defaults, so always send the value */
    dgm_send_configuration configuration = {.return_immediately = !waits        ? DGM_TRUE
                                                                  : p->at.is_v1 ? DGM_UNSET
                                                                                : DGM_FALSE};
    dgm_send_request request = {.tenant = dgm_a2a_tenant_of(&p->at),
                                .message = message,
                                .configuration = waits && p->at.is_v1 ? NULL : &configuration};
    struct follow f = {.p = p, .s = s, .waits = waits};
    return dgm_client_follow(&f, streams ? DGM_METHOD_STREAM : DGM_METHOD_SEND, &request, NULL);
}

int dgm_client_converse(peer *p, dgm_message *message, show *s, int status)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    if (message)
        status = send_message(p, message, s);
    while (status == DGM_CLI_OK && dgm_client_can_ask(s)) {
        dgm_message answer;
        if (!dgm_client_ask(s, a, &answer)) {
            dgm_client_print_requests(s, p->address);
            return DGM_CLI_OK;
        }
        status = send_message(p, &answer, s);
    }
    return status;
}

int dgm_client_send(const dgm_cli_line *line)
{
    peer p = {0};
    show s;
    dgm_message message;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    int status = client_send_message_of(a, line, &message);
    if (status)
        return status;
    dgm_show_init(&s, dgm_cli_get(line, "json"));
    if (!(status = dgm_peer_open(&p, line, line->args[0]))) {
        dgm_client_http_catch_interrupt(p.http);
        status = dgm_client_converse(&p, &message, &s, DGM_CLI_OK);
    }
    dgm_peer_close(&p);
    dgm_show_done(&s);
    return status;
}
