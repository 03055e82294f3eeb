// Graphs of LangGraph's Functional API (entrypoint()): the differences from a StateGraph. The rules are those of
// python/dragoman/_functional.py:
//
// They have no state with keys: the input is the argument of the function, the output is its return value, and `getPreviousState()` is
// the value that the author saves. So the input is an object with `messages` (only the new message: the thread has no history) and `a2a_inbox`, and
// the answer is found in the return value:
//
//     { a2a_outbox: ... }                the outbox
//     { messages: [...] }                its last AI message; the same for a returned list of messages, message or text
//     anything else                      the text that was streamed
//
// The id of the message that started a run is in the metadata of its checkpoints, so that a run that was lost can be found.
import { flatMessage, graphJson, isMessage } from './messages.js';

export const KEYS = ['messages', 'a2a_inbox'];
export const MESSAGE_ID = 'message_id'; // in the metadata of a checkpoint

export const isFunctional = (compiled) => compiled.outputChannels === '__end__' && '__previous__' in compiled.channels;

/** The name of the function: that of the node whose `updates` are the value that it returns. */
export const entryOf = (compiled) => Object.keys(compiled.nodes).find((name) => !name.startsWith('__'));

/** Messages in what a function returns, in the form of the protocol, and its outbox. */
export function valuesOf(returned) {
    if (typeof returned === 'string') return { messages: returned ? [{ type: 'ai', content: returned }] : [], outbox: null };
    if (Array.isArray(returned) || isMessage(returned)) return { messages: flatList([returned].flat()), outbox: null };
    if (returned === null || typeof returned !== 'object') return { messages: [], outbox: null };
    return { messages: flatList([returned.messages ?? []].flat()), outbox: returned.a2a_outbox ?? null };
}

function flatList(list) {
    return list.flatMap((m) => {
        if (typeof m === 'string') return m ? [{ type: 'ai', content: m }] : [];
        if (isMessage(m)) return [flatMessage(m, true)];
        if (!m || typeof m !== 'object' || !('content' in m)) return [];
        const { role, ...plain } = graphJson(m);
        return 'type' in plain ? [plain] : role ? [{ ...plain, type: role === 'assistant' ? 'ai' : role === 'user' ? 'human' : role }] : [];
    });
}

/** Of the message in the input of a run. */
export function messageIdOf(input) {
    const id = input?.messages?.at?.(-1)?.id;
    return typeof id === 'string' ? id : undefined;
}

/**
 * The nodes that run next. Between the end of a node and the checkpoint of its step LangGraph reports none, though the step is not done and
 * others may follow: the tasks are there.
 */
export const nextOf = (state) => (state.next?.length ? [...state.next] : (state.tasks ?? []).map((t) => t.name));

/** The messages that a function has returned, after the message that it answers. */
export function stateOf(state, interrupts, hasValues) {
    const id = state.metadata?.[MESSAGE_ID], next = nextOf(state);
    const { messages, outbox } = next.length ? { messages: [], outbox: null } : valuesOf(state.values);
    const asked = id ? [{ type: 'human', content: '', id }] : [];
    return {
        exists: state.createdAt !== undefined, next, interrupts, messageIds: id ? [id] : [],
        ...(hasValues ? { values: { messages: [...asked, ...messages], ...(outbox === null ? {} : { a2a_outbox: graphJson(outbox) }) } } : {}),
    };
}
