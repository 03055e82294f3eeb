// Agents as functions. See docs/agents/javascript.md.
//
//     import { agent } from 'dragoman';
//     export default agent(async (turn) => {
//         await turn.write(`You wrote: ${turn.text}`);
//     });
import { Answer, Message } from './view.js';
import { NotDeterministic } from './journal.js';
import { Failed, Rejected, Suspended, ToolCall, Turn } from './turn.js';

/** What a function is served as. A symbol of all copies of this package: the worker may be another one. */
export const MARK = Symbol.for('dragoman.agent');

/**
 * Makes a function an agent. The function gets a Turn. It writes its answer, or yields texts, or returns a text.
 * options: {id, name, description, skills, version, inputModes, outputModes}. All but `id` are for the agent card; the server's
 * configuration has priority.
 */
export function agent(options, fn) {
    if (typeof options === 'function') [options, fn] = [{}, options];
    if (typeof fn !== 'function') throw new TypeError(`agent: expected a function, got ${typeof fn}`);
    Object.defineProperty(fn, MARK, { value: { ...options }, configurable: true });
    return fn;
}

export { Answer, Failed, Message, NotDeterministic, Rejected, Suspended, ToolCall, Turn };
