/* init.c - the files of `dragoman init`, and writing them without touching what is there. */
#include "init_int.h"
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* How the server of an agent is reached. */
#define REMOTE_SETTINGS                                                                            \
    "    # token_env: AGENT_TOKEN  # the environment variable with its bearer token or API key\n"  \
    "    # token_header: Authorization\n"                                                          \
    "    # headers: {X-Team: blue} # further headers; ${NAME} is an environment variable\n"        \
    "    # connect_timeout: 10     # seconds until there must be a connection\n"                   \
    "    # answer_timeout: 120     # ... until it must begin to answer\n"                          \
    "    # silence_timeout: 300    # ... between two bytes of its answer\n"                        \
    "    # timeout: 3600           # ... for one answer in all\n"                                  \
    "    # ca_file: ca.pem         # certificates to trust instead of the machine's\n"             \
    "    # proxy: http://127.0.0.1:3128\n"

#define REMOTE_END                                                                                 \
    "  # working_message: One moment...\n"                                                         \
    "\n"                                                                                           \
    "# Its card may name another address. Private ones are refused unless they are listed here.\n" \
    "# outbound: {allow: [10.0.0.0/8]}\n"

/* ---- llm ----------------------------------------------------------------------------------------------- */

/* clang-format would indent the texts by the length of their first macro. */
/* clang-format off */
static const char llm_yaml[] =
    HEAD("a language model with tools.")
    "agents:\n"
    "- id: assistant\n"
    "  type: llm\n"
    "  card:\n"
    "    name: Assistant\n"
    "    description: Answers questions, with its tools.\n"
    "  settings:\n"
    "    base_url: \"mock:\"         # a scripted model; a real one: https://api.openai.com/v1 and the like\n"
    "    # api: chat               # or responses\n"
    "    # model: gpt-5-mini\n"
    "    # api_key_env: OPENAI_API_KEY\n"
    "    instructions: Be brief. Use the tools when they help.\n"
    "    tools:\n"
    "    - units                   # all tools of the MCP server below\n"
    "    - exec: {name: now, description: the date and time in UTC, command: [date, -u]}\n"
    "    ask_user: true            # the model may ask the user a question\n"
    "    # approve: [now]          # calls that a person must approve; always: all of them\n"
    "    # history: 50             # messages of the conversation that the model gets\n"
    "    # limits: {max_iterations: 25, max_time: 600}\n"
    "\n"
    "# MCP servers: a program, or the URL of a server. `dragoman mcp list` prints their tools.\n"
    "mcp:\n"
    "  units: {command: [\"@PROGRAM@\", mcp-demo]}\n"
    "  # files: {command: [npx, -y, \"@modelcontextprotocol/server-filesystem\", ./data]}\n"
    "  # search: {url: https://mcp.example.com/mcp}\n";

/* ---- a2a ----------------------------------------------------------------------------------------------- */

static const char a2a_yaml[] =
    HEAD("an A2A agent that runs elsewhere.")
    "# Replace the URL: `dragoman connect URL` detects what is at an address and prints this part.\n"
    "agents:\n"
    "- id: remote\n"
    "  type: a2a                   # A2A 1.0 or 0.3, JSON-RPC or HTTP+JSON, as its card says\n"
    "  settings:\n"
    "    url: http://127.0.0.1:9000  # /.well-known/agent-card.json is below it; or a card's URL\n"
    REMOTE_SETTINGS
    REMOTE_END;

/* ---- http ---------------------------------------------------------------------------------------------- */

static const char http_yaml[] =
    HEAD("an HTTP service that answers a POST per turn.")
    "# Replace URL and format: `dragoman connect URL` detects them and prints this part.\n"
    "agents:\n"
    "- id: service\n"
    "  type: http\n"
    "  settings:\n"
    "    url: http://127.0.0.1:9000/run\n"
    "    format: ag-ui             # or ag-ui-0, openai-chat, openai-responses, ai-sdk\n"
    "    # model: NAME             # OpenAI's formats: the model of requests\n"
    REMOTE_SETTINGS
    REMOTE_END;

/* ---- exec ---------------------------------------------------------------------------------------------- */

static const char exec_yaml[] =
    HEAD("the program agent.sh.")
    "agents:\n"
    "- id: first\n"
    "  type: exec                  # any program: a message on its stdin, the answer on its stdout\n"
    "  card:\n"
    "    name: First agent\n"
    "    description: Repeats what you write.\n"
    "    version: 0.1.0\n"
    "    skills:\n"
    "    - {id: repeat, name: Repeat, description: Repeats what you write, tags: [example]}\n"
    "  settings:\n"
    "    command: [./agent.sh]\n"
    "    input: text               # json: one line with the message and its task\n"
    "    output: text              # json: one line per event, to stream, ask and fail\n"
    "    timeout: 60               # seconds\n"
    "    # inherit_env: [API_KEY]  # variables of the server's environment that the program needs\n"
    "  # reply: auto               # message: answers are not stored; task: always a task\n"
    "  # working_message: One moment...\n";
/* clang-format on */

static const char exec_agent[] =
    "#!/bin/sh\n"
    "# The agent of dragoman.yaml. It is started for each message: standard input is the text of "
    "the\n"
    "# message, standard output is the answer. An exit status other than 0 is a failure. To send\n"
    "# events (progress, files, questions), set input and output to json in dragoman.yaml.\n"
    "text=$(cat)\n"
    "printf 'You wrote: %s\\n' \"$text\"\n";

static const dgm_init_file exec_files[] = {{"dragoman.yaml", exec_yaml, false},
                                           {"dragoman.schema.json", NULL, false},
                                           {"agent.sh", exec_agent, true},
                                           {0}};

static const dgm_init_file llm_files[] = {
    {"dragoman.yaml", llm_yaml, false}, {"dragoman.schema.json", NULL, false}, {0}};

static const dgm_init_file a2a_files[] = {
    {"dragoman.yaml", a2a_yaml, false}, {"dragoman.schema.json", NULL, false}, {0}};

static const dgm_init_file http_files[] = {
    {"dragoman.yaml", http_yaml, false}, {"dragoman.schema.json", NULL, false}, {0}};

#define URL_TODO "Replace the URL in dragoman.yaml by that of your agent."

const dgm_init_kind dgm_init_kinds[] = {
    {"exec", "a program that answers, and a server for it", exec_files},
    {"python", "an agent as a Python function, and a server for it", dgm_init_python_files, "exec"},
    {"langgraph", "a LangGraph graph in Python, and a server for it", dgm_init_langgraph_files,
     .todo = "Install LangGraph: python3 -m venv .venv && .venv/bin/pip install langgraph"},
    {"llm", "a language model with tools, one of them an MCP server", llm_files},
    {"a2a", "a server for an A2A agent that runs elsewhere", a2a_files, .todo = URL_TODO},
    {"http", "a server for an HTTP service: AG-UI, OpenAI or AI SDK", http_files, .todo = URL_TODO},
    {0},
};

const dgm_init_kind *dgm_init_kind_find(dgm_str name)
{
    for (const dgm_init_kind *k = dgm_init_kinds; k->name; k++)
        if (dgm_str_eq(name, dgm_str_from(k->name)))
            return k;
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

static dgm_code path_of(char out[PATH_MAX], const char *folder, const char *name, dgm_err *err)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_MAX
               ? DGM_OK
               : dgm_fail(err, DGM_BAD_PARAMS, NULL, "the name of the folder is too long");
}

static dgm_code write_file(const char *path, const dgm_init_file *file, dgm_str text, dgm_err *err)
{
    size_t n = text.n, done = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file->is_program ? 0777 : 0666);
    if (fd < 0 && errno == EEXIST)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "%s exists already: remove it or choose another folder", path);
    if (fd < 0)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot write %s: %s", path, strerror(errno));
    while (done < n) {
        long wrote = write(fd, text.p + done, n - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    if (close(fd) || done < n) {
        dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot write %s: %s", path, strerror(errno));
        unlink(path);
        return DGM_UNAVAILABLE;
    }
    return DGM_OK;
}

/* @PROGRAM@ is this program: it may not be in PATH. */
static void init_put_text(dgm_buf *b, const char *text)
{
    static const char mark[] = "@PROGRAM@";
    char self[PATH_MAX];
    const char *at = strstr(text, mark);
    ssize_t n = at ? readlink("/proc/self/exe", self, sizeof self - 1) : 0;
    if (!at) {
        dgm_buf_add_str(b, dgm_str_from(text));
        return;
    }
    dgm_buf_add_str(b, (dgm_str){text, (size_t)(at - text)});
    dgm_buf_add_str(b, n > 0 ? (dgm_str){self, (size_t)n} : DGM_STR("dragoman"));
    dgm_buf_add_str(b, dgm_str_from(at + strlen(mark)));
}

dgm_code dgm_init_write(const dgm_init_kind *kind, const char *folder, dgm_err *err)
{
    char path[PATH_MAX];
    struct stat st;
    dgm_code rc = DGM_OK;
    const dgm_init_file *f;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return dgm_fail(err, DGM_UNAVAILABLE, NULL, "cannot create the folder %s: %s", folder,
                        strerror(errno));
    for (f = kind->files; f->name; f++) { /* look before writing any */
        if ((rc = path_of(path, folder, f->name, err)))
            return rc;
        if (lstat(path, &st) == 0)
            return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                            "%s exists already: remove it or choose another folder", path);
    }
    for (f = kind->files; f->name && !rc; f++) {
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        if (f->text)
            init_put_text(&b, f->text);
        else
            dgm_config_put_schema(&b);
        if (!(rc = path_of(path, folder, f->name, err)))
            rc = write_file(path, f, dgm_buf_str(&b), err);
        dgm_buf_done(&b);
    }
    if (!rc)
        return DGM_OK;
    for (f--; f-- > kind->files;) /* those before the one that failed were made here */
        if (!path_of(path, folder, f->name, NULL))
            unlink(path);
    return rc;
}
