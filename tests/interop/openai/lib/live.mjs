// Live servers for the programs that talk to one: agents of every kind behind OpenAI's API.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder, Server } from '../../server/node/lib/server.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));

/** Agents by what they do; `demo` does not wait between its steps, `steady` says a word every 20 ms. */
export const agents = [
    { id: 'demo', type: 'demo', default: true, settings: { pace: 0 } },
    { id: 'steady', type: 'demo', settings: { pace: 0.02 } },
    { id: 'hello', type: 'hello' },
    { id: 'caller', type: 'exec', settings: { command: [`${here}caller.py`] } },
    { id: 'gate', type: 'exec', settings: { command: [`${here}../../server/gate.sh`], input: 'text', output: 'text' } },
];

/** One with a database, so that it can be killed and started again. */
export const live = () => new Server({ agents }, `sqlite:${join(folder, `${randomUUID()}.db`)}`).start();

/** A message for the agent `gate`, and what lets it go on. */
export function gate() {
    const path = join(folder, randomUUID());
    return { message: path, open: () => writeFileSync(path, '') };
}
