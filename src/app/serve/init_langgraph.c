/* init_langgraph.c - the files of `dragoman init langgraph`. */
#include "init_int.h"

/* clang-format off */
static const char langgraph_yaml[] =
    HEAD("a LangGraph graph.")
    "agents:\n"
    "- id: graph\n"
    "  type: langgraph\n"
    "  card:\n"
    "    name: Graph\n"
    "    description: Repeats what you write.\n"
    "  settings:\n"
    "    config: ./langgraph.json  # the project; its .venv and its .env are used\n"
    "    graph: agent              # a graph of langgraph.json\n"
    "    # checkpointer: server    # the state of conversations is in the server's store\n"
    "    # recursion_limit: 100\n"
    "    # timeout: 600            # seconds\n"
    "    # expose_errors: true     # callers see the text of exceptions\n"
    "    # inherit_env: [OPENAI_API_KEY]  # variables of the server's environment that the graph needs\n";

static const char langgraph_json[] =
    "{\n"
    "  \"dependencies\": [\".\"],\n"
    "  \"graphs\": {\"agent\": \"./graph.py:graph\"},\n"
    "  \"env\": \".env\"\n"
    "}\n";

static const char langgraph_graph[] =
    "\"\"\"A graph with one node. The model is a fake one that streams: it needs no key.\"\"\"\n"
    "from langchain_core.language_models.fake_chat_models import GenericFakeChatModel\n"
    "from langchain_core.messages import AIMessage\n"
    "from langgraph.graph import END, START, MessagesState, StateGraph\n"
    "\n"
    "\n"
    "def answer(state: MessagesState):\n"
    "    # a real one: model = init_chat_model(\"openai:gpt-5-mini\"), from langchain.chat_models\n"
    "    text = f\"You wrote: {state['messages'][-1].content}\"\n"
    "    model = GenericFakeChatModel(messages=iter([AIMessage(text)]))\n"
    "    return {\"messages\": [model.invoke(state[\"messages\"])]}\n"
    "\n"
    "\n"
    "builder = StateGraph(MessagesState)\n"
    "builder.add_node(\"answer\", answer)\n"
    "builder.add_edge(START, \"answer\")\n"
    "builder.add_edge(\"answer\", END)\n"
    "graph = builder.compile()\n";

static const char langgraph_readme[] =
    "# A LangGraph graph behind Dragoman\n"
    "\n"
    "`graph.py` is the graph, `langgraph.json` names it, `dragoman.yaml` is its server.\n"
    "\n"
    "    python3 -m venv .venv && .venv/bin/pip install langgraph\n"
    "    dragoman serve --watch\n"
    "    dragoman send \"hello\"\n"
    "\n"
    "The same without `dragoman.yaml`: `dragoman serve --langgraph langgraph.json`.\n"
    "docs/agents/langgraph.md has files, data, progress, questions (`interrupt`) and full A2A answers.\n";
/* clang-format on */

const dgm_init_file dgm_init_langgraph_files[] = {
    {"dragoman.yaml", langgraph_yaml, false},  {"dragoman.schema.json", NULL, false},
    {"langgraph.json", langgraph_json, false}, {"graph.py", langgraph_graph, false},
    {"README.md", langgraph_readme, false},    {0}};
