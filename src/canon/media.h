/* canon/media.h - what kind of thing a file is, and files within an address. */
#pragma once

#include "canon/canon.h"

/* As the part says, or as its file name or address lets guess; absent when nothing does. */
dgm_str dgm_media_type(const dgm_part *p);
dgm_str dgm_media_type_of_name(dgm_str name);

/* Without parameters: "text/plain; charset=utf-8" is text/plain. */
dgm_str dgm_media_essence(dgm_str media_type);

/* "image/": is the media type one of those? */
bool dgm_media_is(dgm_str media_type, dgm_str prefix);

/* "pdf" for application/pdf; "bin" for what we do not know. */
const char *dgm_media_extension(dgm_str media_type);

/* IMAGE, AUDIO, VIDEO; DOCUMENT for all the rest. */
dgm_canon_part_kind dgm_media_kind(dgm_str media_type);

/* OpenAI's name of an audio format, "wav" or "mp3"; absent for every other media type. */
dgm_str dgm_media_audio_format(dgm_str media_type);

/* Takes a data: URL in base64 apart. The bytes come out as standard base64; media_type may be empty. */
bool dgm_media_read_data_url(dgm_arena *a, dgm_str url, dgm_str *ret_media_type,
                             dgm_str *ret_base64);
dgm_str dgm_media_data_url(dgm_arena *a, dgm_str media_type, dgm_str base64);
