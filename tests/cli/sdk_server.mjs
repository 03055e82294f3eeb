// A stranger's server: the agents of tests/interop behind the servers of @a2a-js/sdk, with a card that
// names where they really listen.   node tests/cli/sdk_server.mjs 1.0|0.3      prints the address
import { createServer } from 'node:http';
import { agent03, agent1, http03, http1, listen } from '../interop/node/lib/agents.mjs';

const old = process.argv[2] === '0.3';
const { url } = await listen(old ? agent03() : agent1(), old ? http03 : http1);
const common = {
    name: 'Stranger', description: 'An agent of another SDK', version: '1', capabilities: { streaming: true },
    defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], skills: [{ id: 's', name: 'S', description: 'does s', tags: ['x'] }],
};
const card = old
    ? { ...common, protocolVersion: '0.3.0', url: `${url}/rpc`, preferredTransport: 'JSONRPC', additionalInterfaces: [{ url: `${url}/rest`, transport: 'HTTP+JSON' }] }
    : { ...common, supportedInterfaces: [['JSONRPC', 'rpc'], ['HTTP+JSON', 'rest']].map(([protocolBinding, path]) => ({ url: `${url}/${path}`, protocolBinding, protocolVersion: '1.0' })) };
const server = createServer((request, response) => {
    const found = request.url === '/.well-known/agent-card.json';
    response.writeHead(found ? 200 : 404, { 'Content-Type': 'application/json' });
    response.end(found ? JSON.stringify(card) : '{}');
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
