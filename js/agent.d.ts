/** A JSON value. */
export type Json = any;

/** A file of a message: `content` or `url` is set. */
export interface File {
    name: string | null;
    mediaType: string | null;
    content: Buffer | null;
    url: string | null;
}

/** A message of the conversation. `raw` is the A2A 1.0 object. */
export class Message {
    constructor(raw: Record<string, any>);
    readonly raw: Record<string, any>;
    readonly id: string;
    readonly role: 'user' | 'agent';
    /** Text, data and file parts, as A2A 1.0 has them. */
    readonly parts: Record<string, any>[];
    /** The text parts, one after the other. */
    readonly text: string;
    /** The values of the data parts. */
    readonly data: Json[];
    readonly files: File[];
    readonly metadata: Record<string, any>;
}

/** The answer to a question. */
export class Answer {
    constructor(message: Message);
    readonly message: Message;
    readonly text: string;
    /** The value of its first data part, or null. */
    readonly data: Json;
    readonly files: File[];
    /** True or false if the answer decides about a request for approval, else null. */
    readonly approved: boolean | null;
    /** The output of a tool that the caller ran, or null. */
    resultOf(callId: string): Json;
}

/** A tool that the caller runs: see Turn.callTool(). */
export interface Tool {
    name: string;
    description: string;
    parameters: Record<string, any>;
}

/** A call of one of the agent's own tools: call succeeded() or failed() when it is over. */
export class ToolCall {
    private constructor();
    readonly id: string;
    readonly name: string;
    readonly arguments: Json;
    succeeded(result?: Json): Promise<void>;
    /** Reports a failure; callers may read the sentence. */
    failed(error: string): Promise<void>;
}

export interface Usage {
    inputTokens?: number;
    outputTokens?: number;
    totalTokens?: number;
    model?: string;
    [name: string]: Json;
}

/** One turn of the conversation. Methods that send return a promise: await it, so that a fast agent waits for a slow reader. */
export class Turn {
    private constructor();
    /** The message that started this turn. It stays the same when the function runs again after an answer. */
    readonly message: Message;
    /** The conversation before it, oldest first. */
    readonly history: Message[];
    /** The text of the message. */
    readonly text: string;
    /** The files of the message. */
    readonly files: File[];
    /** Metadata of the request. */
    readonly metadata: Record<string, any>;
    /** System and developer messages of OpenAI's and AG-UI's clients, as one text. */
    readonly instructions: string;
    /** Tools that the caller runs: see callTool(). */
    readonly tools: Tool[];
    readonly taskId: string;
    readonly contextId: string;
    /** A key for what the agent stores about this conversation. A contextId alone is not unique. */
    readonly thread: string;
    readonly principal: string;
    readonly tenant: string;
    readonly acceptedOutputModes: string[];
    /** Aborted when the caller cancels the task. Pass it to fetch() and to other functions that wait. */
    readonly signal: AbortSignal;
    /** State that the agent shares with its callers (AG-UI). Setting a member sends it. */
    state: Record<string, any>;

    /** The conversation and the message as messages of Chat Completions: role and content, texts only. */
    chat(): { role: 'system' | 'user' | 'assistant'; content: string }[];
    /** Messages that the caller sent to this turn while it works, since the last call. */
    newMessages(): Message[];
    /** Resolves when newMessages() has one. */
    waitForMessage(): Promise<void>;

    /** Adds text to the answer. Callers see it at once. */
    write(text: string): Promise<void>;
    /** Shows what the agent is doing. It is not part of the answer. */
    progress(text: string): Promise<void>;
    /** Adds text to the reasoning that clients may show apart from the answer. */
    reasoning(text: string): Promise<void>;
    /** Reports a call of one of the agent's own tools, calls the function, and reports what it returns or that it failed. */
    toolCall<A, T>(name: string, args: A, fn: (args: A) => T | Promise<T>): Promise<T>;
    /** Reports a call of one of the agent's own tools; the result is reported with its methods. */
    toolCall(name: string, args?: Json): ToolCall;
    /** Reports the tokens that a model used. */
    usage(usage: Usage): Promise<void>;
    /** Sends a custom event to AG-UI clients, a data part to AI SDK clients. */
    custom(name: string, value: Json): Promise<void>;
    /** Sends a file: its content (bytes, or a string as text), or a URL. */
    file(name: string, content: string | Uint8Array | null, options?: { url?: string | URL; mediaType?: string }): Promise<void>;
    /** Sends a JSON value as an artifact. */
    data(value: Json, name?: string): Promise<void>;
    /** Sends any event, in the form that docs/agents.md describes for programs. */
    emit(event: Record<string, any>): Promise<void>;
    /** Sends the whole shared state. */
    setState(value: Record<string, any>): Promise<void>;

    /** Asks the caller and returns the answer. The function ends here; it runs again from the top when the answer is there. */
    ask(question: string, options?: { choices?: readonly string[]; schema?: Record<string, any> }): Promise<Answer>;
    /** Asks whether a tool may be called. Asks again until the answer is a decision. */
    approve(tool: string, args?: Json, options?: { question?: string }): Promise<boolean>;
    /** Asks the caller to sign in at a URL; any message is the answer. */
    signIn(url: string, reason?: string): Promise<Answer>;
    /** Lets the caller run one of its tools (see `tools`) and returns the output. */
    callTool(name: string, args?: Json): Promise<Json>;
    /**
     * Calls the function once and stores its result, which must be JSON. When the agent's function runs again, the stored
     * result is returned and the function is not called.
     */
    step<A extends unknown[], T>(name: string, fn: (...args: A) => T | Promise<T>, ...args: A): Promise<T>;
}

/** Throw it to fail the task: callers read the sentence. Any other error is only in the operator's log. */
export class Failed extends Error {}
/** Throw it to refuse the message: callers read the sentence. The task ends as rejected. */
export class Rejected extends Error {}
/** Ends the function while a question waits for its answer. Code that catches it cannot send anything more. */
export class Suspended extends Error {}
/** The function did something else when it ran again. */
export class NotDeterministic extends Error {}

export interface AgentOptions {
    /** The name to choose an agent by if a file has several; default: the name of the export. */
    id?: string;
    /** For the agent card. */
    name?: string;
    description?: string;
    skills?: { id: string; name: string; description?: string; tags?: string[]; examples?: string[] }[];
    version?: string;
    /** Media types. */
    inputModes?: string[];
    outputModes?: string[];
}

type Result = void | string | null | undefined;
export type AgentFunction = (turn: Turn) => Result | Promise<Result> | AsyncIterable<string> | Iterable<string>;

/** Makes a function an agent. It writes its answer, or yields texts, or returns a text. */
export function agent<F extends AgentFunction>(fn: F): F;
export function agent<F extends AgentFunction>(options: AgentOptions, fn: F): F;
