// A server that answers with the stories as Chat Completions: the model's name is the story's. A request with the
// results of calls gets the part of the story after them.
import { convert, serve, sse, story } from './world.mjs';

/** A story's events as a stream of chunks, or as one completion. */
export const chunks = (events) => convert('a2a-1.0', 'openai-chat', sse(events));
export const completion = (events) => convert('a2a-1.0', 'openai-chat', sse(events), '--as', 'response');

export const server = () => serve((body, path) => {
    if (!path.endsWith('/chat/completions')) throw new Error(`no such path: ${path}`);
    const { events, then } = story(body.model);
    const said = then && body.messages.some((m) => m.role === 'tool') ? then : events;
    if (body.stream) return { stream: chunks(said) };
    const json = completion(said);
    const { error } = JSON.parse(json);
    if (error) throw new Error(error.message); // a server would not say 200
    return { json };
});

/** Clients cannot take back what was streamed: there the final text follows, apart. */
export const streamed = (s) => (s.final ? `${s.text}\n\n${s.final}` : s.text ?? '');
export const reason = (s) => (s.calls ? 'tool_calls' : 'stop');
/** The error that the client gets. */
export const wrong = (s) => s.error ?? (s.name === 'canceled' ? 'The task was canceled' : undefined);
