/* lib/direct_parts.c - parts on both sides of the direct road: marks, media types, data: URLs. */
#include "lib/direct_int.h"

/* ---- metadata ---------------------------------------------------------------------------------------- */

dgm_str dgm_direct_mark(const dgm_json *metadata, const char *key)
{
    yyjson_val *v = dgm_json_get(metadata, dgm_str_from(key));
    return yyjson_is_str(v) ? dgm_json_str(v) : (dgm_str){0};
}

yyjson_val *dgm_direct_member(const dgm_part *p, const char *name)
{
    if (p->kind != DGM_PART_DATA)
        return NULL;
    yyjson_val *v = dgm_json_get(p->data, dgm_str_from(name));
    return yyjson_is_null(v) ? NULL : v;
}

/* ---- media types ------------------------------------------------------------------------------------- */

/* The files that chats are about; the first row of a type gives its extension. */
static const struct {
    const char *extension, *media_type;
} types[] = {
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"svg", "image/svg+xml"},
    {"bmp", "image/bmp"},
    {"tiff", "image/tiff"},
    {"avif", "image/avif"},
    {"heic", "image/heic"},
    {"wav", "audio/wav"},
    {"mp3", "audio/mpeg"},
    {"ogg", "audio/ogg"},
    {"flac", "audio/flac"},
    {"m4a", "audio/mp4"},
    {"mp4", "video/mp4"},
    {"webm", "video/webm"},
    {"mov", "video/quicktime"},
    {"pdf", "application/pdf"},
    {"json", "application/json"},
    {"zip", "application/zip"},
    {"xml", "application/xml"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"txt", "text/plain"},
    {"md", "text/markdown"},
    {"csv", "text/csv"},
    {"html", "text/html"},
};
#define N_TYPES (sizeof types / sizeof *types)

/* Without parameters: "text/plain; charset=utf-8" is text/plain. */
static dgm_str essence(dgm_str media_type)
{
    const char *end = media_type.n ? memchr(media_type.p, ';', media_type.n) : NULL;
    if (end)
        media_type.n = (size_t)(end - media_type.p);
    while (media_type.n && media_type.p[media_type.n - 1] == ' ')
        media_type.n--;
    return media_type;
}

dgm_str dgm_direct_media_type_of_name(dgm_str name)
{
    for (size_t i = 0; i < name.n; i++) { /* an address may go on behind its path */
        if (name.p[i] == '?' || name.p[i] == '#')
            name.n = i;
    }
    size_t dot = name.n;
    while (dot && name.p[dot - 1] != '.' && name.p[dot - 1] != '/')
        dot--;
    if (!dot || name.p[dot - 1] != '.')
        return (dgm_str){0};
    dgm_str extension = {name.p + dot, name.n - dot};
    for (size_t i = 0; i < N_TYPES; i++) {
        if (dgm_str_eq_nocase(extension, dgm_str_from(types[i].extension)))
            return dgm_str_from(types[i].media_type);
    }
    return (dgm_str){0};
}

dgm_str dgm_direct_media_type(const dgm_part *p)
{
    if (p->media_type.n)
        return p->media_type;
    dgm_str guess = dgm_direct_media_type_of_name(p->filename);
    if (!guess.n && p->kind == DGM_PART_URL)
        guess = dgm_direct_media_type_of_name(p->content);
    return guess;
}

const char *dgm_direct_extension(dgm_str media_type)
{
    dgm_str plain = essence(media_type);
    for (size_t i = 0; i < N_TYPES; i++) {
        if (dgm_str_eq_nocase(plain, dgm_str_from(types[i].media_type)))
            return types[i].extension;
    }
    return "bin";
}

bool dgm_direct_media_is(dgm_str media_type, dgm_str prefix)
{
    return media_type.n >= prefix.n && dgm_str_eq_nocase((dgm_str){media_type.p, prefix.n}, prefix);
}

dgm_str dgm_direct_audio_format(dgm_str media_type)
{
    static const struct {
        const char *media_type, *format;
    } formats[] = {
        {"audio/wav", "wav"},      {"audio/x-wav", "wav"}, {"audio/wave", "wav"},
        {"audio/vnd.wave", "wav"}, {"audio/mpeg", "mp3"},  {"audio/mp3", "mp3"},
    };
    dgm_str plain = essence(media_type);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (dgm_str_eq_nocase(plain, dgm_str_from(formats[i].media_type)))
            return dgm_str_from(formats[i].format);
    }
    return (dgm_str){0};
}

dgm_chat_part_kind dgm_direct_part_kind(const dgm_part *p, dgm_role role)
{
    bool is_file = p->kind == DGM_PART_RAW || p->kind == DGM_PART_URL;
    if (!is_file || role == DGM_ROLE_AGENT)
        return DGM_CHAT_PART_TEXT; /* an assistant has no other parts */
    dgm_str media_type = dgm_direct_media_type(p);
    if (dgm_direct_media_is(media_type, DGM_STR("image/")))
        return DGM_CHAT_PART_IMAGE;
    if (p->kind == DGM_PART_URL)
        return DGM_CHAT_PART_TEXT; /* a file part has no room for an address */
    return dgm_direct_audio_format(media_type).n ? DGM_CHAT_PART_AUDIO : DGM_CHAT_PART_FILE;
}

/* ---- data: URLs -------------------------------------------------------------------------------------- */

bool dgm_direct_data_url(dgm_arena *a, dgm_str url, dgm_str *ret_media_type, dgm_str *ret_base64)
{
    static const char base64[] = ";base64";
    const size_t scheme = sizeof "data:" - 1, ending = sizeof base64 - 1;
    if (!dgm_direct_media_is(url, DGM_STR("data:")))
        return false;
    dgm_str rest = {url.p + scheme, url.n - scheme};
    const char *comma = rest.n ? memchr(rest.p, ',', rest.n) : NULL;
    if (!comma)
        return false;
    dgm_str head = {rest.p, (size_t)(comma - rest.p)};
    if (head.n < ending ||
        !dgm_str_eq_nocase((dgm_str){head.p + head.n - ending, ending}, dgm_str_from(base64)))
        return false;
    dgm_str bytes = {comma + 1, rest.n - head.n - 1};
    if (!dgm_base64_normalise(a, bytes, ret_base64))
        return false;
    *ret_media_type = (dgm_str){head.p, head.n - ending};
    return true;
}
