/*
 * base/limits.h - every size a peer can choose, and why the number is what it is.
 *
 * The names in quotes are what error messages call them. A limit is tested by going one past it.
 */
#pragma once

/* "json_depth": real traffic nests below 20; 128 keeps every recursive walk within a small stack. */
#define DGM_MAX_JSON_DEPTH 128

/* "object_bytes": one JSON text (a request, a card, a history). Four records of the largest size
 * fit; parsing one needs about 4 times its size in memory, 10 times when it is all small numbers. */
#define DGM_MAX_OBJECT_BYTES ((size_t)32 << 20)

/* "record_bytes": one event of a stream, also the largest stored record (design, section 7). */
#define DGM_MAX_RECORD_BYTES ((size_t)8 << 20)

/* "task_bytes": a whole Task, which contains the data of many events. */
#define DGM_MAX_TASK_BYTES DGM_MAX_OBJECT_BYTES

/* "file_bytes": a file of an agent (turn.file, emit_file). Above 3 MiB the packages send it in several events, whose chunks are
 * joined: the Task has it as base64, next to everything else. */
#define DGM_MAX_FILE_BYTES ((size_t)20 << 20)

/* "output_bytes": what one input object may become. Text at most doubles; a list of tiny chat messages
 * grows sixfold by the ids and metadata that A2A needs. */
#define DGM_MAX_OUTPUT_BYTES ((size_t)128 << 20)

/* "list_items": elements of one protocol list (parts, history, skills, ...). Each costs us a struct
 * of up to 200 bytes while its text may be only `{},`. */
#define DGM_MAX_LIST_ITEMS 100000

/* Lists of a request to a server; a file that is converted may have up to list_items everywhere.
 * "request_messages": messages, or items of Responses. A conversation of a year of working days with forty messages
 * each; every message costs some 300 bytes besides its text. */
#define DGM_MAX_REQUEST_MESSAGES 10000

/* "request_parts": parts, or tool calls, of one message. Agents that answer in parts stay below 100. */
#define DGM_MAX_REQUEST_PARTS 1000

/* "request_tools": tools, or entries of AG-UI's context. OpenAI takes 128; MCP gateways offer some hundreds. */
#define DGM_MAX_REQUEST_TOOLS 1000

/* "request_words": entries of a list that names things: include, stop, metadata, extensions, acceptedOutputModes,
 * referenceTaskIds. The longest one seen has 16. */
#define DGM_MAX_REQUEST_WORDS 128

/* "resume_entries": of AG-UI's resume, answers to requests for approval in Responses and AI SDK. A run has one open question, which
 * may ask for the approval of several calls ("open_calls" at most). */
#define DGM_MAX_RESUME_ENTRIES 256
/* So many names of questions in one request are read from the store; the others are ignored. */
#define DGM_MAX_RESUME_READS 16

/* "item_references": of one Responses or Conversations request. Clients that reference everything send one per item
 * of the conversation. */
#define DGM_MAX_ITEM_REFERENCES 1000

/* A value that an error message repeats, or a list in it. Two of them and a sentence fit into dgm_err.msg. */
#define DGM_MAX_QUOTED_BYTES ((size_t)120)

/* "unknown_members": members of one protocol object that we keep without knowing them. */
#define DGM_MAX_UNKNOWN_MEMBERS 1000

/* "sse_line_bytes" is DGM_MAX_RECORD_BYTES plus room for the field name and an envelope. */
#define DGM_MAX_SSE_LINE_BYTES (DGM_MAX_RECORD_BYTES + 4096)

/* "id_bytes": the id or name of a server-sent event. Ours are numbers; the longest seen in the wild
 * is a 300 byte resource name. */
#define DGM_MAX_ID_BYTES 1024

/* "loops": threads of a server. More threads than cores do not help; 64 is the largest machine we tried. */
#define DGM_MAX_LOOPS 64

/* Agent ids that one process has seen: a configuration has at most 1000 agents, and a reload may replace them by
 * others several times before the list is full. A slot is a pointer. */
#define DGM_MAX_AGENTS 10000

/* "log_bytes": records of one task in memory; a task with more than this fails. */
#define DGM_MAX_LOG_BYTES ((size_t)256 << 20)

/* "log_records": likewise, counted in events. A model writes some 100 a second: three hours of it. */
#define DGM_MAX_LOG_RECORDS 1000000

/* "queued_messages": to a task that is working; more than a person types ahead. */
#define DGM_MAX_QUEUED_MESSAGES 16

/* "subscribers": open streams of one task. Each costs a few hundred bytes and a write per event. */
#define DGM_MAX_SUBSCRIBERS 10000

/* What a run may be ahead of the store before its agent is asked to wait: enough for a commit to be worth
 * its fsync. */
#define DGM_MAX_UNWRITTEN_RECORDS 1024
#define DGM_MAX_UNWRITTEN_BYTES ((size_t)4 << 20)

/* Runs of the process before this one start again in groups, per loop: all of them at once would be thousands of requests to
 * the same server, which may have been restarted, too. */
#define DGM_RESUME_RUNS 16
#define DGM_RESUME_MS 100 /* between two groups */

/* How long a cancel waits for the agent before it answers with the task as it is. */
#define DGM_CANCEL_WAIT_MS 5000

/* "http_body_bytes": a request's body: one JSON text. */
#define DGM_MAX_HTTP_BODY_BYTES DGM_MAX_OBJECT_BYTES

/* "small_body_bytes": bodies of requests that need little (cancel, subscribe, a GET with a body). */
#define DGM_MAX_SMALL_BODY_BYTES ((size_t)64 << 10)

/* "in_flight_bytes": bodies that are read and documents that were decoded from them, of the whole server. With it a
 * server stays below 512 MiB whatever its callers send (make bench-memory). A body counts twice, since it is decoded:
 * three of the largest are admitted at once, and hundreds of usual ones. */
#define DGM_MAX_IN_FLIGHT_BYTES ((size_t)256 << 20)

/* "in_flight_bytes_per_principal": likewise of one principal, or of one address if there are no tokens. Half of
 * the server's, so that one caller cannot keep all others out; the largest body can still be decoded. */
#define DGM_MAX_PRINCIPAL_BYTES ((size_t)128 << 20)

/* "json_values": values of one JSON text (keys count, too). Each takes 16 bytes, and a list of small numbers has one for
 * every two bytes: without this limit 32 MiB of them take 300 MiB and stop their loop for most of a second.
 * A document of this many values of usual size is above the limit object_bytes. */
#define DGM_MAX_JSON_VALUES 1000000

/* "http_header_bytes": request line and headers together; browsers and proxies send below 16 KiB. */
#define DGM_MAX_HTTP_HEADER_BYTES ((size_t)32 << 10)

/* "http_headers": header lines of one request. */
#define DGM_MAX_HTTP_HEADERS 100

/* "connections": per loop; each idle one costs about 1 KiB of ours and 4 of the kernel's. */
#define DGM_MAX_CONNECTIONS 20000

/* "store_queue": appends (and, apart from them, reads) waiting for the store: what a disk that stalls
 * for a second meets at our highest rate. The bytes of their records are bounded as well. */
#define DGM_MAX_STORE_QUEUE 20000
#define DGM_MAX_STORE_QUEUE_BYTES ((size_t)256 << 20)

/* For a store that several servers share. "replica_name_bytes": the name of a server in the log. "commands": commands from one
 * server to others without an answer; each is a request of a client. "command_bytes": one command: a request and its metadata.
 * "followed": tasks of a server that other servers read; above the limit they are read without wake-ups. */
#define DGM_MAX_REPLICA_NAME_BYTES 63
#define DGM_MAX_COMMANDS 10000
#define DGM_MAX_COMMAND_BYTES (DGM_MAX_OBJECT_BYTES + ((size_t)1 << 20))
#define DGM_MAX_FOLLOWED 100000

/* Message ids that the store knows without a read, as bits: six filters, each four times the one before,
 * take 22 million of them in 33 MiB. With more of them every message is looked for again. */
#define DGM_MAX_KNOWN_FILTERS 6

/* What the store memory: holds before it forgets what ended first; for tests, benchmarks and servers that
 * need not remember. */
#define DGM_MAX_MEMORY_TASKS 100000
#define DGM_MAX_MEMORY_BYTES ((size_t)512 << 20)

/* Likewise of notes: the oldest go. */
#define DGM_MAX_MEMORY_NOTES 100000
#define DGM_MAX_MEMORY_NOTE_BYTES ((size_t)256 << 20)

/* "checkpoint_bytes": one value of a checkpoint of a graph, or of a write. States with documents in them reach some MiB. */
#define DGM_MAX_CHECKPOINT_BYTES ((size_t)64 << 20)

/* "checkpoint_total_bytes": the values of one checkpoint and its writes together: they are read at once. */
#define DGM_MAX_CHECKPOINT_TOTAL_BYTES ((size_t)256 << 20)

/* "checkpoint_writes": the writes of one checkpoint. Graphs with some thousand parallel tasks exist. */
#define DGM_MAX_CHECKPOINT_WRITES 10000

/* "checkpoint_name_bytes": a thread, a namespace (it names the path of nested subgraphs), an id, a channel, a run, the type
 * of a value. */
#define DGM_MAX_CHECKPOINT_NAME_BYTES 1024

/* "checkpoint_names": threads or runs in one request; rows in one page. */
#define DGM_MAX_CHECKPOINT_NAMES 1000
#define DGM_MAX_CHECKPOINT_PAGE 100

/* Blobs that a worker process writes at the same time, for values above its line; each has the limit checkpoint_bytes.
 * Of those that it reads: how many, and their bytes together, until it closes them. */
#define DGM_MAX_WORKER_BLOBS 8
#define DGM_MAX_WORKER_READ_BLOBS 20000
#define DGM_MAX_WORKER_READ_BYTES ((size_t)512 << 20)

/* Threads that a worker process may use: those of its last requests. */
#define DGM_MAX_WORKER_THREADS 65536

/* What the store memory: holds of checkpoints before it deletes the threads that were changed first. */
#define DGM_MAX_MEMORY_THREADS 100000
#define DGM_MAX_MEMORY_CHECKPOINT_BYTES ((size_t)256 << 20)

/* A page of a list ends when its folded Tasks have this size, after one row at least. */
#define DGM_MAX_STORE_PAGE_BYTES ((size_t)16 << 20)

/* "final_text_bytes": the text of an agent that completes without repeating it is copied, so that the final
 * status contains it. Longer answers are documents: their artifact is enough. */
#define DGM_MAX_FINAL_TEXT_BYTES ((size_t)1 << 20)

/* "processes": programs that one exec agent runs at a time, unless it is set otherwise; each is a process
 * of unknown size. */
#define DGM_MAX_PROCESSES 64

/* "stderr_lines": what of a program's stderr goes to our log, per run. */
#define DGM_MAX_STDERR_LINES 100

/* The end of a program's stderr that the log of its failure repeats: a traceback of some 40 lines. */
#define DGM_MAX_STDERR_TAIL_BYTES ((size_t)4 << 10)

/* Names of variables withheld from a program, in the log of its failure: some 40 names. */
#define DGM_MAX_WITHHELD_BYTES ((size_t)1 << 10)

/* "text_chunk_bytes": what of a text without line ends becomes one chunk. */
#define DGM_MAX_TEXT_CHUNK_BYTES ((size_t)16 << 10)

/* An arena keeps one block of at most this size when it is reset, so that a stream of small events
 * allocates nothing and one large event does not stay in memory. */
#define DGM_ARENA_KEEP_BYTES ((size_t)256 << 10)

/* Freed blocks that an event loop retains for its next requests: a block, and all of them. A request takes 9 KiB in ten blocks,
 * and 64 of them are answered in one turn. */
#define DGM_SPARE_BLOCK_BYTES ((size_t)4 << 10)
#define DGM_SPARE_BYTES ((size_t)1 << 20)

/* A server's configuration. It is read by its own administrator, but a mistyped path may name any file:
 * "config_bytes": one file; the largest seen in practice are card texts of some 50 KiB. */
#define DGM_MAX_CONFIG_BYTES ((size_t)1 << 20)

/* "config_values": keys and values of one file, with what its aliases repeat. */
#define DGM_MAX_CONFIG_VALUES 20000

/* "config_depth": how deep it nests; the settings of the table need 7. */
#define DGM_MAX_CONFIG_DEPTH 32

/* "config_env_bytes": one environment variable; long secrets (keys in PEM) stay below 16 KiB. */
#define DGM_MAX_CONFIG_ENV_BYTES ((size_t)64 << 10)

/* "config_findings": mistakes reported at once. */
#define DGM_MAX_CONFIG_FINDINGS 100

/* "open_items": steps, subagents, models with a usage of their own that one run tells of; more are left
 * out. They are looked for one after the other, and no agent has that many. */
#define DGM_MAX_OPEN_ITEMS 1000

/* "open_texts": messages whose text a run streams at the same time. When another one begins, the oldest is taken
 * as complete. They are searched one after the other, and no agent speaks in that many at once. */
#define DGM_MAX_OPEN_TEXTS 64

/* "snapshot_bytes": copies of messages, to send all of them to a run's reader again when the final text differs
 * from the streamed one. Above the limit the text is sent as a message of its own. */
#define DGM_MAX_SNAPSHOT_BYTES ((size_t)8 << 20)

/* "lint_items": artifacts, tool calls and open items of one stream that lint and the order of events remember,
 * some 16 to 200 bytes each. Past it the rules about them are silent. */
#define DGM_MAX_LINT_ITEMS 65536

/* "lint_findings": of one rule that lint reports for one value. Each is searched for in the text, and the
 * eleventh adds nothing. */
#define DGM_MAX_LINT_FINDINGS 10

/* "lint_texts": the last texts of a stream whose length and sum lint stores, to detect a text that is sent twice. */
#define DGM_MAX_LINT_TEXTS 64

/* "note_bytes": what is stored for a caller besides tasks: the metadata of a conversation, some items. */
#define DGM_MAX_NOTE_BYTES ((size_t)1 << 20)

/* "journal_bytes": the results of steps and the answers of one turn of a worker's function (journal/put). A text above the second limit
 * is sent in parts. */
#define DGM_MAX_JOURNAL_BYTES ((size_t)64 << 20)
#define DGM_JOURNAL_PART_BYTES ((size_t)1 << 20)

/* "run_note_bytes": a text that an agent stores for later runs: the state of an agent loop has the whole conversation, that of a
 * worker's function its journal behind a line of our own. */
#define DGM_MAX_RUN_NOTE_BYTES (DGM_MAX_JOURNAL_BYTES + 4096)

/* Of the Task in `currentTask` of a worker: files above the first size come without their bytes, a larger Task without its
 * artifacts. */
#define DGM_WORKER_TASK_FILE_BYTES ((size_t)64 << 10)
#define DGM_WORKER_TASK_BYTES ((size_t)2 << 20)

/* "graph_calls": calls of models in one run of a LangGraph graph whose text may still come. Graphs that fan out have some tens
 * of parallel branches. */
#define DGM_MAX_GRAPH_CALLS 256
/* "graph_held_bytes": text of parallel calls of models in one run that waits until the call before is complete. Behind it,
 * text is not streamed; the answer has it. */
#define DGM_MAX_GRAPH_HELD_BYTES ((size_t)256 << 10)

/* "env_file_bytes": langgraph.json, and a project's .env. */
#define DGM_MAX_ENV_FILE_BYTES ((size_t)1 << 20)

/* "invoke_depth": tasks of this server, each invoked by the one before; against agents that invoke each other for ever. */
#define DGM_MAX_INVOKE_DEPTH 8
/* "invoked": agents that one run has invoked and that have not ended; more than any model calls at once. */
#define DGM_MAX_INVOKED 64

/* "service_state_bytes": the shared state of an AG-UI service that is stored for the next turn. Each patch of it copies it. */
#define DGM_MAX_SERVICE_STATE_BYTES ((size_t)64 << 10)

/* "waiting_questions": tasks of one caller that wait with equal conversations, which a request without a conversation id could
 * answer. From two on no request continues any of them; the others are listed so that the last one to wait is found again. */
#define DGM_MAX_WAITING_QUESTIONS 16
/* How long such a question is found: a person may answer after a week of holidays. Afterwards the task is found by its id only. */
#define DGM_QUESTION_MS ((int64_t)8 * 24 * 3600 * 1000)

/* "open_calls": of one question to the caller, by whose ids its task is found; more than any model makes at
 * once. What is behind them, or has an id of more than DGM_MAX_ID_BYTES, is found by its task only. */
#define DGM_MAX_OPEN_CALLS 256

/* "history_bytes": of a context's messages, and of the tasks that they are read from, when a client asks for all of
 * them: the newest are read, and the rest is left out. Two tasks of the largest size; the request needs some five times
 * this while it is answered. */
#define DGM_MAX_HISTORY_BYTES ((size_t)16 << 20)

/* So many of these requests of one principal are worked on at the same time; the others wait. */
#define DGM_MAX_HISTORY_READS 2

/* "unsent_bytes": of responses with a history that clients have not read yet, in all and of one principal. Four of the
 * largest ones; smaller ones are too few bytes to matter. */
#define DGM_MAX_UNSENT_BYTES ((size_t)128 << 20)
#define DGM_MAX_UNSENT_BYTES_OF_ONE (4 * DGM_MAX_HISTORY_BYTES)

/* "page_bytes": a page of items ends when it has this size, after one item at least; has_more is then true. */
#define DGM_MAX_PAGE_BYTES ((size_t)4 << 20)

/* The largest values of the setting `history` of an agent: the conversation that it gets with every run. */
#define DGM_MAX_AGENT_HISTORY_MESSAGES 10000
#define DGM_MAX_AGENT_HISTORY_BYTES DGM_MAX_RECORD_BYTES

/* "history_tasks": tasks of one context whose messages are put together when somebody asks for all of them. */
#define DGM_MAX_HISTORY_TASKS 1000

/* How long an answer that is given as a whole may take; the task goes on behind it. */
#define DGM_MAX_ANSWER_MS ((uint64_t)10 * 60 * 1000)

/* "request_files": files that one request names by their id. Each is read with its task. */
#define DGM_MAX_REQUEST_FILES 20

/* The URL of another A2A server in a request of the inspector. */
#define DGM_MAX_REMOTE_URL_BYTES 4096

/* Live tasks in one list for operators. */
#define DGM_MAX_LIVE_LISTED 1000

/* Findings of lint in one answer of the inspector; the page shows them at their events. */
#define DGM_MAX_FINDINGS 1000

/* MCP servers (src/mcp). "mcp_pages": of a list of tools; with "request_tools" and "mcp_list_bytes" the list ends even if
 * the server always returns another cursor. */
#define DGM_MAX_MCP_PAGES 100
#define DGM_MAX_MCP_LIST_BYTES ((size_t)8 << 20)
/* "mcp_messages": notifications and requests of one server in a second; progress bars send some ten. */
#define DGM_MAX_MCP_MESSAGES_PER_SECOND 2000
/* "mcp_bad_lines": lines of a program that are not JSON-RPC, in its life: some write their log to stdout. */
#define DGM_MAX_MCP_BAD_LINES 100
/* "mcp_unread_bytes": that a program has not read from its stdin. Arguments of the largest size fit. */
#define DGM_MAX_MCP_UNREAD_BYTES ((size_t)32 << 20)
/* "mcp_waiting": lists and calls of one session that wait for it; and questions of one call, at once. */
#define DGM_MAX_MCP_WAITING 1000
#define DGM_MAX_MCP_QUESTIONS 16
/* "mcp_rounds": how often the server may ask for input in one call. */
#define DGM_MAX_MCP_ROUNDS 100
/* "mcp_state_bytes": requestState, ids of tasks and cursors, which we store and send back. */
#define DGM_MAX_MCP_STATE_BYTES ((size_t)256 << 10)
/* "mcp_content": parts of one result of a tool. */
#define DGM_MAX_MCP_CONTENT 1000

/* A JSON Schema of a tool, also one that an MCP server or a caller has sent. The largest ones seen (cloud APIs) have some 3,000 values.
 * "schema_values": its keys and values. "schema_nodes": its subschemas; each takes some 500 bytes. */
#define DGM_MAX_SCHEMA_VALUES 200000
#define DGM_MAX_SCHEMA_NODES 20000

/* "schema_depth": schemas within schemas while a value is checked: three for each level of a value of json_depth. */
#define DGM_MAX_SCHEMA_DEPTH 400

/* "schema_steps": of one check, patterns included: arguments of a tool need some hundreds. All of them take less than a second. */
#define DGM_MAX_SCHEMA_STEPS 4000000

/* "pattern_bytes": one regular expression; the longest seen (e-mail addresses) have 6 KiB. */
#define DGM_MAX_PATTERN_BYTES ((size_t)16 << 10)

/* Parentheses within parentheses of one regular expression: PCRE2 compiles them recursively. */
#define DGM_MAX_PATTERN_DEPTH 100

/* The memory of one match: PCRE2 stores some 150 bytes per open choice. */
#define DGM_MAX_PATTERN_HEAP_BYTES ((size_t)8 << 20)

/* "tool_output_bytes": the result of a configured tool. A model reads some 4 bytes per token: this is more than any context holds. */
#define DGM_MAX_TOOL_OUTPUT_BYTES ((size_t)4 << 20)

/* "tool_url_bytes": the URL of an http tool with its arguments; servers accept 8 KiB. */
#define DGM_MAX_TOOL_URL_BYTES ((size_t)8 << 10)

/* "worker_line_bytes": one line of a worker process, in either direction. */
#define DGM_MAX_WORKER_LINE_BYTES ((size_t)8 << 20)
/* "worker_waiting": runs and calls of one process that wait for it; and the bytes of their requests. */
#define DGM_MAX_WORKER_WAITING 1000
#define DGM_MAX_WORKER_WAITING_BYTES ((size_t)64 << 20)
/* "worker_requests": of one process that are not answered yet. */
#define DGM_MAX_WORKER_REQUESTS 1000
/* "worker_unread_bytes": that a process has not read. Eight lines of the largest size. */
#define DGM_MAX_WORKER_UNREAD_BYTES ((size_t)64 << 20)
/* Events of one run that the store is too slow for: with more of them the process is not read for a moment; with
 * "worker_held_bytes" the run fails. */
#define DGM_WORKER_PAUSE_BYTES ((size_t)4 << 20)
#define DGM_MAX_WORKER_HELD_BYTES ((size_t)32 << 20)
/* "worker_runs": of one process at the same time, the largest value of the setting. */
#define DGM_MAX_WORKER_RUNS 10000
/* "worker_log_lines": lines that one process prints in a second and that are logged; and the bytes of a line that a failure repeats. */
#define DGM_MAX_WORKER_LOG_LINES 200
#define DGM_MAX_WORKER_TAIL_LINE ((size_t)512)
/* "watched_folders": of one agent, with serve --watch. */
#define DGM_MAX_WATCHED_FOLDERS 512
