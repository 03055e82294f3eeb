// What every frame of every stream must be, whoever reads it.
import { check, equal } from './tap.mjs';

const kinds = ['task', 'message', 'status-update', 'artifact-update'];
const wrappers = ['task', 'message', 'statusUpdate', 'artifactUpdate'];

/** [{id, data}] of a recorded stream; a last event that was cut off is left out. */
function events(text) {
    return text.split('\n\n').slice(0, -1).map((block) => block.split('\n').filter((line) => !line.startsWith(':')))
        .filter((lines) => lines.length > 0)
        .map((lines) => {
            const fields = lines.map((line) => /^(id|data|event): (.*)$/.exec(line) ?? check(false, `a line of another kind: ${line}`));
            return Object.fromEntries(fields.map(([, name, value]) => [name, value]));
        });
}

/** A streaming call over JSON-RPC that is refused: the error is the only frame. */
const isError = (frames) => frames.length === 1 && 'error' in JSON.parse(frames[0].data);

/** stream: {text, rpc, version}. First a task or a message, one wrapper member (1.0, REST) or a kind
 *  (0.3 over JSON-RPC) each, ids that count up, nothing internal. */
export function checkFrames({ text, rpc, version }) {
    check(!text.includes('internal:'), `an internal event on the wire: ${text}`);
    const frames = events(text);
    if (rpc && isError(frames)) return;
    let before = 0;
    for (const [n, { id, data, ...other }] of frames.entries()) {
        let event = JSON.parse(data);
        equal(other, {}, 'other lines of a frame');
        if (rpc) {
            equal(Object.keys(event).sort(), ['id', 'jsonrpc', 'result'], 'members of the envelope');
            event = event.result;
        }
        const bare = rpc && version === '0.3';
        const names = bare ? [event.kind] : Object.keys(event);
        check(names.length === 1 && (bare ? kinds : wrappers).includes(names[0]), () => `no event of A2A ${version}: ${data}`);
        check(n > 0 || names[0] === 'task' || names[0] === 'message', () => `the first event is ${data}`);
        check(Number(id) > before, `id ${id} after ${before}`);
        before = Number(id);
    }
}
