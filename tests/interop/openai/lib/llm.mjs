// A live server with an agent of `type: llm` and the scripted model, and the messages that its tests send.
import { readFileSync } from 'node:fs';
import { Server } from '../../server/node/lib/server.mjs';

const assistant = JSON.parse(readFileSync(new URL('../../llm.json', import.meta.url), 'utf8'));

export const llm = () => new Server({ agents: [{ ...assistant, default: true }] }).start();
export const messages = {
    remove: 'call remove {"path": "old.txt"}', ask: 'ask Which colour?', call: 'call weather {"city": "Oslo"}',
    slow: `slow 60 ${'word '.repeat(80)}end`, steer: 'echo steered',
};
export const weather = { name: 'weather', description: 'the weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } };
