/* wire/aisdk/aisdk_decode_data.c - progress, activities, state, artifacts and files of a stream. */
#include "canon/message_content.h"
#include "wire/aisdk/aisdk_int.h"

typedef struct aisdk_decoder D;

static void activity(D *d, dgm_str id, dgm_str type, const dgm_json *content)
{
    dgm_canon_event e = {.kind = DGM_CANON_ACTIVITY_SNAPSHOT};
    if (!yyjson_obj_size((yyjson_val *)(uintptr_t)content) || !type.p)
        return;
    e.activity.message_id = id;
    e.activity.activity_type = type;
    e.activity.content = content;
    dgm_aisdk_give(d, &e);
}

static void custom(D *d, dgm_str name, const dgm_json *value)
{
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM};
    e.custom.name = name;
    e.custom.value = value;
    dgm_canon_artifact_from_custom(d->r->arena, d->r->mint, &e);
    dgm_aisdk_give(d, &e);
}

/* As AG-UI's event has it, in case that it cannot be read. */
static void data_artifact(D *d, const dgm_json *it)
{
    dgm_member m = {DGM_STR("artifact"), it};
    if (yyjson_is_obj((yyjson_val *)(uintptr_t)it))
        custom(d, DGM_STR(DGM_NAME_ARTIFACT), dgm_json_object(d->r->arena, &m, 1));
}

dgm_code dgm_aisdk_file_chunk(D *d, yyjson_val *v)
{
    dgm_canon_part part;
    dgm_code rc = dgm_aisdk_read_file(d->r, v, NULL, &part);
    dgm_str filename = rc ? (dgm_str){0} : dgm_json_str_member(part.metadata, "filename");
    if (rc)
        return d->rc = rc;
    bool has_bytes = part.source.kind == DGM_CANON_SOURCE_DATA;
    dgm_part file = {.kind = has_bytes ? DGM_PART_RAW : DGM_PART_URL,
                     .content = part.source.value,
                     .media_type = part.source.mime_type,
                     .filename = filename};
    dgm_artifact artifact = {.artifact_id = dgm_aisdk_made_id(d, 'f'), .parts = {&file, 1}};
    dgm_canon_event e = {.kind = DGM_CANON_ARTIFACT, .artifact = {.artifact = &artifact}};
    dgm_aisdk_give(d, &e);
    return d->rc;
}

void dgm_aisdk_data_chunk(D *d, yyjson_val *v, dgm_str type)
{
    yyjson_val *data = dgm_json_get(v, DGM_STR("data"));
    dgm_canon_event e = {.kind = DGM_CANON_STATE_SNAPSHOT};
    dgm_str name = dgm_json_str_member(data, "name");
    if (dgm_str_is(type, AISDK_STATUS)) {
        activity(d, dgm_arena_printf(d->r->arena, "%.*s-status", DGM_P(d->run_id)),
                 DGM_STR(AISDK_A2A_STATUS), dgm_aisdk_status_content(d->r->arena, data));
    } else if (dgm_str_is(type, AISDK_ACTIVITY)) {
        dgm_str id = dgm_json_str_member(v, "id");
        activity(d, id.p ? id : dgm_aisdk_made_id(d, 'a'),
                 dgm_json_str_member(data, "activityType"), dgm_json_get(data, DGM_STR("content")));
    } else if (dgm_str_is(type, AISDK_STATE)) {
        e.state.snapshot = data;
        dgm_aisdk_give(d, &e);
    } else if (dgm_str_is(type, AISDK_STATE_DELTA) && yyjson_is_arr(data)) {
        e.kind = DGM_CANON_STATE_DELTA;
        e.state_delta.patch = data;
        dgm_aisdk_give(d, &e);
    } else if (dgm_str_is(type, AISDK_ARTIFACT)) {
        data_artifact(d, data);
    } else if (dgm_str_is(type, AISDK_CUSTOM) && name.p) {
        custom(d, name, dgm_json_get(data, DGM_STR("value")));
    } else {
        d->r->n_unknown++;
    }
}
