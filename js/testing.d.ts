import type { AgentFunction, File, Json } from './agent.js';

/** A text, or an A2A message; ids and the role may be left out. */
export type TestMessage = string | { parts: Record<string, any>[]; [member: string]: any };

/** What the server would send. */
export interface Options {
    metadata?: Record<string, any>;
    tools?: { name: string; description?: string; parameters?: Record<string, any> }[];
    history?: TestMessage[];
    principal?: string;
    tenant?: string;
}

export interface ReportedCall {
    id: string;
    name: string;
    arguments: Json;
    success: boolean | null;
    result: Json;
    error: string | null;
}

/** What an agent emitted in one turn. */
export interface Result {
    /** Every event, as the server gets it. */
    readonly events: Record<string, any>[];
    readonly status: 'completed' | 'interrupted' | 'cancelled' | 'failed';
    /** What the function threw, or null. */
    readonly error: unknown;
    /** The text of this turn. */
    readonly text: string;
    /** The state of the task: "TASK_STATE_COMPLETED", ... */
    readonly state: string;
    /** The text of the question that waits for an answer, or null. */
    readonly question: string | null;
    /** The sentence of a task that failed or was rejected, or null. */
    readonly reason: string | null;
    readonly files: File[];
    /** Values of data artifacts. */
    readonly data: Json[];
    /** Texts of progress(). */
    readonly progress: string[];
    readonly toolCalls: ReportedCall[];
    readonly reasoning: string;
    readonly usage: Record<string, any>[];
}

/** A conversation with an agent. */
export class Conversation {
    constructor(fn: AgentFunction, options?: Options);
    readonly contextId: string;
    /** The A2A task of the last turn. */
    readonly task: Record<string, any> | null;
    /** Starts a turn or answers a question, and returns what the agent emits until its turn ends. */
    send(message: TestMessage): Promise<Result>;
    /** Runs the last message again, as the server does after a worker was lost. */
    resume(): Promise<Result>;
    /** Sends a message to the turn that works. */
    steer(message: TestMessage): void;
    cancel(): void;
}

/** One turn of a new conversation. Throws what the function throws. */
export function runAgent(fn: AgentFunction, message: TestMessage, options?: Options): Promise<Result>;
