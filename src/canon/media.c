/* canon/media.c - media types and file names. */
#include "canon/media.h"
#include "base/buf.h"
#include "json/shape.h"

/* The files that conversations are about; the first row of a type gives its extension. */
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

dgm_str dgm_media_essence(dgm_str media_type)
{
    const char *end = media_type.n ? memchr(media_type.p, ';', media_type.n) : NULL;
    if (end)
        media_type.n = (size_t)(end - media_type.p);
    while (media_type.n && media_type.p[media_type.n - 1] == ' ')
        media_type.n--;
    return media_type;
}

dgm_str dgm_media_type_of_name(dgm_str name)
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

dgm_str dgm_media_type(const dgm_part *p)
{
    if (p->media_type.n)
        return p->media_type;
    dgm_str guess = dgm_media_type_of_name(p->filename);
    if (!guess.n && p->kind == DGM_PART_URL)
        guess = dgm_media_type_of_name(p->content);
    return guess;
}

const char *dgm_media_extension(dgm_str media_type)
{
    dgm_str plain = dgm_media_essence(media_type);
    for (size_t i = 0; i < N_TYPES; i++) {
        if (dgm_str_eq_nocase(plain, dgm_str_from(types[i].media_type)))
            return types[i].extension;
    }
    return "bin";
}

bool dgm_media_is(dgm_str media_type, dgm_str prefix)
{
    return media_type.n >= prefix.n && dgm_str_eq_nocase((dgm_str){media_type.p, prefix.n}, prefix);
}

dgm_canon_part_kind dgm_media_kind(dgm_str media_type)
{
    if (dgm_media_is(media_type, DGM_STR("image/")))
        return DGM_CANON_PART_IMAGE;
    if (dgm_media_is(media_type, DGM_STR("audio/")))
        return DGM_CANON_PART_AUDIO;
    return dgm_media_is(media_type, DGM_STR("video/")) ? DGM_CANON_PART_VIDEO
                                                       : DGM_CANON_PART_DOCUMENT;
}

dgm_str dgm_media_audio_format(dgm_str media_type)
{
    static const struct {
        const char *media_type, *format;
    } formats[] = {
        {"audio/wav", "wav"},      {"audio/x-wav", "wav"}, {"audio/wave", "wav"},
        {"audio/vnd.wave", "wav"}, {"audio/mpeg", "mp3"},  {"audio/mp3", "mp3"},
    };
    dgm_str plain = dgm_media_essence(media_type);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (dgm_str_eq_nocase(plain, dgm_str_from(formats[i].media_type)))
            return dgm_str_from(formats[i].format);
    }
    return (dgm_str){0};
}

/* ---- data: URLs -------------------------------------------------------------------------------------- */

bool dgm_media_read_data_url(dgm_arena *a, dgm_str url, dgm_str *ret_media_type,
                             dgm_str *ret_base64)
{
    static const char base64[] = ";base64";
    const size_t scheme = sizeof "data:" - 1, ending = sizeof base64 - 1;
    if (!dgm_media_is(url, DGM_STR("data:")))
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

dgm_str dgm_media_data_url(dgm_arena *a, dgm_str media_type, dgm_str base64)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "data:");
    dgm_buf_add_str(&b, media_type);
    dgm_buf_add_lit(&b, ";base64,");
    dgm_buf_add_str(&b, base64);
    dgm_str url = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return url;
}
