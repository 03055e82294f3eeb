// A live server with one more agent: `told` says what it was told, and does what it is told to do.
import { fileURLToPath } from 'node:url';
import { Server } from '../../server/node/lib/server.mjs';
import { agents as others } from './live.mjs';

const told = { id: 'told', type: 'exec', settings: { command: [fileURLToPath(new URL('told.py', import.meta.url))] } };
export const agents = [...others, told];
export const front = (more) => new Server({ agents, ...more }).start();
