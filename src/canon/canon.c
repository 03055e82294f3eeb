/* canon/canon.c - the events' names. */
#include "canon/canon.h"

const char *dgm_canon_kind_name(dgm_canon_kind kind)
{
    switch (kind) {
    case DGM_CANON_NONE: break;
#define X(sym)                                                                                     \
    case DGM_CANON_##sym: return #sym;
        DGM_CANON_KINDS(X)
#undef X
    }
    return "";
}
