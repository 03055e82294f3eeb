/*
 * backend/worker/worker_watch.c - serve --watch: a new process when the files of an agent change.
 *
 * libuv watches folders one by one. So the folder of the agent and the folders in it are listed once, up to a limit, and again after
 * every change, since a change may be a new folder. An editor writes a file in several steps: the reload comes when
 * nothing has changed for a moment.
 */
#include "backend/worker/worker_int.h"
#include "base/limits.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SETTLE_MS 200
#define MAX_DEPTH 8

struct watched_folder {
    uv_fs_event_t event;
    struct worker_watch *watch;
};

struct worker_watch {
    dgm_worker_pool *pool;
    dgm_loop *loop;
    const char *root;
    struct watched_folder *folders[DGM_MAX_WATCHED_FOLDERS];
    size_t n_folders;
    dgm_timer settle;
    dgm_loop_stop stop;
    bool has_changed;
};

/* ---- which files ------------------------------------------------------------------------------------------------------------ */

static bool watch_has_suffix(dgm_str name, const char *suffix)
{
    size_t n = strlen(suffix);
    return name.n > n && memcmp(name.p + name.n - n, suffix, n) == 0;
}

/* Sources and settings. Data files are left out: the agent itself may write them. */
static bool watch_wants_file(const char *file)
{
    static const char *const suffixes[] = {".py",  ".js", ".mjs",  ".cjs", ".ts",   ".mts", ".tsx",
                                           ".jsx", ".sh", ".yaml", ".yml", ".toml", ".env", NULL};
    dgm_str name = dgm_str_from(file);
    if (dgm_str_is(name, ".env") || dgm_str_is(name, "langgraph.json") ||
        dgm_str_is(name, "package.json"))
        return true;
    for (size_t i = 0; suffixes[i]; i++) {
        if (name.p[0] != '.' && watch_has_suffix(name, suffixes[i]))
            return true;
    }
    return false;
}

static bool watch_wants_folder(const char *name)
{
    return name[0] != '.' && strcmp(name, "__pycache__") != 0 &&
           strcmp(name, "node_modules") != 0 && strcmp(name, "venv") != 0;
}

/* ---- folders ------------------------------------------------------------------------------------------------------------------ */

static void watch_on_event(uv_fs_event_t *h, const char *file, int events, int status)
{
    struct worker_watch *w = ((struct watched_folder *)h->data)->watch;
    (void)events;
    if (status < 0 || !file)
        return;
    w->has_changed = w->has_changed || watch_wants_file(file);
    dgm_timer_start(&w->settle, SETTLE_MS); /* also for a new folder */
}

static void watch_on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void watch_drop_folders(struct worker_watch *w)
{
    for (size_t i = 0; i < w->n_folders; i++)
        uv_close((uv_handle_t *)&w->folders[i]->event, watch_on_closed);
    w->n_folders = 0;
}

static void watch_add_folder(struct worker_watch *w, const char *path)
{
    struct watched_folder *f = dgm_xcalloc(1, sizeof *f);
    f->watch = w;
    f->event.data = f;
    uv_fs_event_init(&w->loop->uv, &f->event);
    uv_unref((uv_handle_t *)&f->event);
    w->folders[w->n_folders++] = f;
    uv_fs_event_start(&f->event, watch_on_event, path,
                      0); /* a folder that has gone is not watched */
}

static void watch_list(struct worker_watch *w, const char *path, unsigned depth)
{
    DIR *dir = depth < MAX_DEPTH && w->n_folders < DGM_MAX_WATCHED_FOLDERS ? opendir(path) : NULL;
    char sub[PATH_MAX];
    struct stat st;
    if (!dir)
        return;
    watch_add_folder(w, path);
    for (struct dirent *e; (e = readdir(dir));) {
        int n = snprintf(sub, sizeof sub, "%s/%s", path, e->d_name);
        if (watch_wants_folder(e->d_name) && n > 0 && (size_t)n < sizeof sub &&
            lstat(sub, &st) == 0 && S_ISDIR(st.st_mode))
            watch_list(w, sub, depth + 1);
    }
    closedir(dir);
}

static void watch_on_settled(void *arg)
{
    struct worker_watch *w = arg;
    watch_drop_folders(w);
    watch_list(w, w->root, 0);
    if (!w->has_changed)
        return;
    w->has_changed = false;
    dgm_worker_log(&w->pool->slots[0], false,
                   "files of the agent have changed: its worker is "
                   "started again");
    dgm_worker_pool_reload(w->pool);
}

static void watch_on_stop(void *arg)
{
    struct worker_watch *w = arg;
    dgm_timer_stop(&w->settle);
    watch_drop_folders(w);
}

void dgm_worker_watch_open(dgm_worker_pool *p, dgm_loop *loop)
{
    struct worker_watch *w = dgm_new(p->arena, struct worker_watch);
    w->pool = p;
    w->loop = loop;
    w->root = p->options.watch    ? p->options.watch
              : p->options.cwd    ? p->options.cwd
              : p->agent.folder.n ? p->agent.folder.p
                                  : ".";
    dgm_timer_init(loop, &w->settle, watch_on_settled, w);
    w->stop = (dgm_loop_stop){.fn = watch_on_stop, .arg = w};
    dgm_loop_on_stop(loop, &w->stop);
    watch_list(w, w->root, 0);
}
