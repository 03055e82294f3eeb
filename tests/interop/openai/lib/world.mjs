// What the programs share: `dragoman convert`, and a server that answers with what it made.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const binary = resolve(root, process.env.DRAGOMAN ?? 'build/dragoman');

if (!existsSync(binary)) {
    console.log(`not ok 1 - dragoman is built\n# no ${binary}: run make build, or name it in DRAGOMAN\n1..1`);
    process.exit(1);
}

/** Runs `dragoman convert`; text (or a value, as JSON) in, text out. Throws with its words. */
export function convert(from, to, value, ...options) {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const args = ['convert', '--from', from, '--to', to, ...options];
    const r = spawnSync(binary, args, { input: text, encoding: 'utf8', maxBuffer: 1 << 28 });
    if (r.status) throw new Error(`${args.join(' ')}: exit ${r.status}\n${r.stderr}for ${text.slice(0, 2000)}`);
    return r.stdout;
}

/** Events as the server-sent events of a stream. */
export const sse = (events) => events.map((e) => `data: ${JSON.stringify(e)}\n\n`).join('');

/** What an agent says, as A2A's events, and what a client is to make of it. */
export const stories = JSON.parse(readFileSync(new URL('stories.json', import.meta.url)));
export const story = (name) => stories.find((s) => s.name === name);

/**
 * A server on a free port: answer(body, path) gives {stream: text} or {json: text}. `seen` are the bodies of
 * the requests so far.
 */
export async function serve(answer) {
    const seen = [];
    const server = createServer(async (request, response) => {
        let text = '';
        for await (const chunk of request.setEncoding('utf8')) text += chunk;
        const body = text ? JSON.parse(text) : undefined;
        seen.push(body);
        try {
            const { stream, json } = await answer(body, request.url);
            response.setHeader('content-type', stream === undefined ? 'application/json' : 'text/event-stream');
            response.end(stream ?? json);
        } catch (error) {
            response.statusCode = 400;
            response.setHeader('content-type', 'application/json');
            response.end(JSON.stringify({ error: { message: String(error), type: 'test', code: 'test', param: null } }));
        }
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    return { url: `http://127.0.0.1:${server.address().port}/v1`, seen, close: () => server.close() };
}
