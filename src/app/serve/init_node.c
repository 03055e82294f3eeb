/* init_node.c - the files of `dragoman init node`. */
#include "init_int.h"

/* clang-format off */
static const char node_yaml[] =
    HEAD("the function of agent.mjs.")
    "agents:\n"
    "- id: main\n"
    "  type: exec\n"
    "  settings:\n"
    "    mode: worker              # one process for all messages; it is started again if it ends\n"
    "    command: [\"@PROGRAM@\", worker, agent.mjs]\n"
    "    # inherit_env: [API_KEY]  # variables of the server's environment that the agent needs\n"
    "  # history: 50               # messages of the conversation in turn.history\n"
    "  # working_message: One moment...\n";

static const char node_agent[] =
    "import { agent } from 'dragoman';\n"
    "\n"
    "export default agent(async (turn) => {\n"
    "    await turn.write(`You wrote: ${turn.text}`);\n"
    "});\n";

static const char node_package[] =
    "{\n"
    "  \"private\": true,\n"
    "  \"type\": \"module\"\n"
    "}\n";

static const char node_readme[] =
    "# An agent in JavaScript\n"
    "\n"
    "`agent.mjs` is the agent: a function that gets a turn of the conversation and writes the answer.\n"
    "`dragoman.yaml` is its server.\n"
    "\n"
    "    dragoman try agent.mjs hello   # one message, without a server\n"
    "    dragoman serve --watch         # a server; agent.mjs is loaded again when it changes\n"
    "\n"
    "Packages: `npm install` them in this folder. The package `dragoman` itself comes with the program. Install it here, too, for tests and for the types in\n"
    "an editor: `npm install --save-dev FOLDER`, where FOLDER is `share/dragoman/js` of the installation, or `js` of the source.\n"
    "\n"
    "    // agent.test.mjs, run by: node --test\n"
    "    import assert from 'node:assert/strict';\n"
    "    import { test } from 'node:test';\n"
    "    import { runAgent } from 'dragoman/testing';\n"
    "    import main from './agent.mjs';\n"
    "\n"
    "    test('the answer', async () => assert.equal((await runAgent(main, 'hello')).text, 'You wrote: hello'));\n"
    "\n"
    "A turn also has the history, files, questions to the user, stored steps, tool calls, progress and shared state:\n"
    "docs/agents/javascript.md.\n";
/* clang-format on */

const dgm_init_file dgm_init_node_files[] = {
    {"dragoman.yaml", node_yaml, false}, {"dragoman.schema.json", NULL, false},
    {"agent.mjs", node_agent, false},    {"package.json", node_package, false},
    {"README.md", node_readme, false},   {0}};
