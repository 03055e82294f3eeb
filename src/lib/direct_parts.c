/* lib/direct_parts.c - parts on both sides of the direct road: chat's kinds of files, data: URLs. */
#include "lib/direct_int.h"

/* ---- media types ------------------------------------------------------------------------------------- */

dgm_str dgm_direct_audio_format(dgm_str media_type)
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

dgm_chat_part_kind dgm_direct_part_kind(const dgm_part *p, dgm_role role)
{
    bool is_file = p->kind == DGM_PART_RAW || p->kind == DGM_PART_URL;
    if (!is_file || role == DGM_ROLE_AGENT)
        return DGM_CHAT_PART_TEXT; /* an assistant has no other parts */
    dgm_str media_type = dgm_media_type(p);
    if (dgm_media_is(media_type, DGM_STR("image/")))
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
