// The clients of @a2a-js/sdk against one server: node sdks.mjs URL. Input: [{"text", "data"?, "answer"?}] on stdin, each a conversation of its own; `answer` is
// sent to the task of the first message. Output: for each client its name, whether it forgets `append`, and for each conversation the events of a stream
// and the task of a send; A2A 1.0's JSON.
import { text } from 'node:stream/consumers';
import { clients } from '../../server/node/lib/clients.mjs';
import { collect, message } from '../../server/node/lib/world.mjs';

const [url] = process.argv.slice(2);
const conversations = JSON.parse(await text(process.stdin));
const results = [];
for (const kind of clients.filter((k) => !k.legacy)) {
    const client = await kind.open(url), seen = [];
    for (const { text: words, data, answer } of conversations) {
        const first = () => message(words, { ...(data && { parts: [{ text: words }, { data }] }) });
        const turns = async (say) => {
            const told = await say(first());
            if (!answer) return [told];
            const { id, contextId } = Array.isArray(told) ? told[0].task : told;
            return [told, await say(message(answer, { taskId: id, contextId }))];
        };
        seen.push({ events: await turns((m) => collect(client.stream(m))), tasks: await turns(async (m) => (await client.send(m)).task) });
    }
    kind.checkStreams();
    results.push({ client: kind.name, forgets: Boolean(kind.forgets), seen });
}
console.log(JSON.stringify(results));
