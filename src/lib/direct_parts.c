/* lib/direct_parts.c - which chat part a file becomes. */
#include "lib/direct_int.h"

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
    return dgm_media_audio_format(media_type).n ? DGM_CHAT_PART_AUDIO : DGM_CHAT_PART_FILE;
}
