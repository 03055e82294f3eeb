/* init_python.c - the files of `dragoman init python`. */
#include "init_int.h"

/* clang-format off */
static const char python_yaml[] =
    HEAD("the function of agent.py.")
    "agents:\n"
    "- id: main\n"
    "  type: exec\n"
    "  settings:\n"
    "    mode: worker              # one process for all messages; it is started again if it ends\n"
    "    command: [\"@PROGRAM@\", worker, agent.py]  # or [python3, -m, dragoman.worker, agent.py]\n"
    "    # inherit_env: [API_KEY]  # variables of the server's environment that the agent needs\n"
    "  # history: 50               # messages of the conversation in turn.history\n"
    "  # working_message: One moment...\n";

static const char python_agent[] =
    "from dragoman.agent import agent\n"
    "\n"
    "@agent\n"
    "async def main(turn):\n"
    "    await turn.write(f\"You wrote: {turn.text}\")\n";

static const char python_readme[] =
    "# An agent in Python\n"
    "\n"
    "`agent.py` is the agent: a function that gets a turn of the conversation and writes the answer.\n"
    "`dragoman.yaml` is its server.\n"
    "\n"
    "    dragoman try agent.py hello    # one message, without a server\n"
    "    dragoman serve --watch         # a server; agent.py is loaded again when it changes\n"
    "\n"
    "In a test, with pytest:\n"
    "\n"
    "    from dragoman.testing import run\n"
    "    from agent import main\n"
    "\n"
    "    def test_answer():\n"
    "        assert run(main, \"hello\").text == \"You wrote: hello\"\n"
    "\n"
    "Packages: create a virtual environment `.venv` in this folder (`python3 -m venv .venv`), and the agent uses it. The\n"
    "package `dragoman` itself comes with the program.\n"
    "\n"
    "A turn also has the history, files, questions to the user, stored steps, tool calls, progress and shared state:\n"
    "docs/agents/python.md.\n";
/* clang-format on */

const dgm_init_file dgm_init_python_files[] = {{"dragoman.yaml", python_yaml, false},
                                               {"dragoman.schema.json", NULL, false},
                                               {"agent.py", python_agent, false},
                                               {"README.md", python_readme, false},
                                               {0}};
