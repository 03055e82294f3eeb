import type { AIMessage, AIMessageChunk } from '@langchain/core/messages';

/** `config.writer` of a node. It is undefined if the graph is not streamed; the functions then do nothing. */
export type Writer = ((chunk: any) => void) | undefined;

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface ArtifactOptions {
    /** The name of the artifact; default: "file" or "data". */
    name?: string;
    /** Continues the artifact of this name that is open. Default: false. */
    append?: boolean;
    /** False: more chunks follow. Default: true. */
    isLastChunk?: boolean;
}

export type FileOptions = ArtifactOptions & { mimeType: string } & ({ url: string; base64?: undefined } | { base64: string; url?: undefined });

/** Sends a file artifact. Its content is either at `url` or in `base64`. */
export function emitFile(writer: Writer, options: FileOptions): void;
/** Sends a data artifact. A TypeError names the place of a value that is not JSON. */
export function emitData(writer: Writer, data: unknown, options?: ArtifactOptions): void;
/** Shows an AIMessage, which is stored in the history, or an AIMessageChunk, which is only streamed. */
export function emitMessage(writer: Writer, message: AIMessage | AIMessageChunk): void;
/** Merges `metadata` into the task's. Keys that start with `aion:` or `dragoman:` are ignored. */
export function emitTaskMetadata(writer: Writer, metadata: Record<string, unknown>): void;

/** Thrown by a node: the task ends as rejected, and the caller sees the message. */
export class TaskRejected extends Error {
    constructor(message: string);
}

export interface ToolDefinition {
    type: 'function';
    function: { name: string; description: string; parameters: Record<string, unknown> };
}

/** The tools that the caller can run, as `model.bindTools()` accepts them. `config`: the configuration of the node. */
export function callerTools(config: { configurable?: Record<string, any> } | undefined): ToolDefinition[];

/** A part of a message, in the form of A2A 0.3 (`kind`), or of 1.0 with the setting `a2a_dialect: "1.0"`. */
export interface A2APart {
    kind?: 'text' | 'file' | 'data';
    text?: string;
    data?: any;
    file?: { uri?: string; bytes?: string; mimeType?: string; name?: string };
    url?: string;
    raw?: string;
    mediaType?: string;
    filename?: string;
    metadata?: Record<string, any>;
}

export interface A2AMessage {
    kind?: 'message';
    messageId?: string;
    role?: string;
    parts: A2APart[];
    contextId?: string;
    taskId?: string;
    metadata?: Record<string, any>;
    extensions?: string[];
    referenceTaskIds?: string[];
}

export interface A2AArtifact {
    artifactId: string;
    name?: string;
    description?: string;
    parts: A2APart[];
    metadata?: Record<string, any>;
}

export interface A2ATask {
    kind?: 'task';
    id?: string;
    contextId?: string;
    status?: { state: string; message?: A2AMessage; timestamp?: string };
    history?: A2AMessage[];
    artifacts?: A2AArtifact[];
    metadata?: Record<string, any>;
}

/** `state.a2a_inbox`: the current Task, the whole inbound Message, the metadata of the request. */
export interface A2AInbox {
    task: A2ATask | null;
    message: A2AMessage;
    metadata: Record<string, any>;
}

/** `state.a2a_outbox`: the Message or Task that the graph answers with. */
export type A2AOutbox = A2AMessage | A2ATask | { message: A2AMessage } | { task: A2ATask };
