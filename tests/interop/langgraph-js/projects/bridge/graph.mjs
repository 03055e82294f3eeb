// A graph whose node gives the checkpointer of its run to another process: JSON lines {id, method, params} on the socket BRIDGE, answered with
// {id, result} or {id, error}. It first sends the name of its thread, and ends with the connection.
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { AIMessage } from '@langchain/core/messages';
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';

async function bridge(_state, { configurable }) {
    const { connection } = configurable.__pregel_checkpointer;
    let n = 0;
    await new Promise((done, fail) => {
        const server = createServer((socket) => {
            const send = (value) => socket.write(`${JSON.stringify(value)}\n`);
            send({ thread: configurable.thread_id });
            createInterface({ input: socket }).on('line', async (line) => {
                const { id, method, params } = JSON.parse(line);
                n++;
                await connection.request(method, params).then((result) => send({ id, result }), (e) => send({ id, error: e.message }));
            }).on('close', () => server.close(done));
        });
        server.on('error', fail);
        server.listen(process.env.BRIDGE);
    });
    return { messages: [new AIMessage(`${n} requests`)] };
}

export const graph = new StateGraph(MessagesAnnotation).addNode('bridge', bridge).addEdge(START, 'bridge');
