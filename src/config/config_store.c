/*
 * config_store.c - where the database is when no setting names it.
 *
 * With a configuration file: dragoman.db in the folder of that file. Without one: $STATE_DIRECTORY (set by systemd),
 * else $XDG_STATE_HOME/dragoman, else ~/.local/state/dragoman. So the place never depends on the folder in which the
 * server is started.
 */
#include "config_int.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define DATABASE "dragoman.db"

static const char *state_env(const dgm_config_source *s, const char *name)
{
    const char *value = s->env ? s->env(name) : getenv(name);
    return value && value[0] == '/' ? value : NULL; /* XDG: relative paths are ignored */
}

dgm_str dgm_config_default_store(dgm_arena *a, const dgm_config_source *s, dgm_str folder,
                                 bool *ret_is_state)
{
    const char *state = state_env(s, "STATE_DIRECTORY"), *home;
    *ret_is_state = false;
    if (s->file || s->text.p)
        return dgm_arena_printf(a, "sqlite:%.*s%s" DATABASE, DGM_P(folder),
                                folder.n && folder.p[folder.n - 1] != '/' ? "/" : "");
    *ret_is_state = true;
    if (state) /* the first of several */
        return dgm_arena_printf(a, "sqlite:%.*s/" DATABASE, (int)strcspn(state, ":"), state);
    if ((state = state_env(s, "XDG_STATE_HOME")))
        return dgm_arena_printf(a, "sqlite:%s/dragoman/" DATABASE, state);
    if ((home = state_env(s, "HOME")))
        return dgm_arena_printf(a, "sqlite:%s/.local/state/dragoman/" DATABASE, home);
    *ret_is_state = false;
    return DGM_STR("sqlite:" DATABASE);
}

dgm_code dgm_config_make_state_folder(const dgm_config *c, dgm_err *err)
{
    char path[PATH_MAX];
    if (!c->store_is_state)
        return DGM_OK; /* a folder that a person named is not created: it may be a typing error */
    snprintf(path, sizeof path, "%s", c->store.p + strlen("sqlite:"));
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0700) && errno != EEXIST)
            return dgm_fail(err, DGM_UNAVAILABLE, NULL,
                            "cannot create the folder %s for the database: %s (--store sqlite:PATH "
                            "names another place)",
                            path, strerror(errno));
        *slash = '/';
    }
    return DGM_OK;
}

const char *dgm_config_default_file(void)
{
    struct stat st;
    return stat(DGM_CONFIG_FILE, &st) == 0 ? DGM_CONFIG_FILE : NULL;
}
