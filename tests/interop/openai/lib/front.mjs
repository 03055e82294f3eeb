// A live server with one more agent: `probe` returns its input, or does what the input asks for.
import { fileURLToPath } from 'node:url';
import { Server } from '../../server/node/lib/server.mjs';
import { agents as others } from './live.mjs';

const probe = { id: 'probe', type: 'exec', settings: { command: [fileURLToPath(new URL('probe.py', import.meta.url))] } };
export const agents = [...others, probe];
export const front = (more) => new Server({ agents, ...more }).start();
