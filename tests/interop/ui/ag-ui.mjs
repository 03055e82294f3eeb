// The clients of AG-UI, 1.0 and before, run through what convert writes: their verifiers find nothing, and the
// messages they build say everything once.
import * as now from '@ag-ui/client';
import * as before from 'ag-ui-client-0';
import { check, equal, run, test } from '../server/node/lib/tap.mjs';
import { serve, stories, tell } from './lib/world.mjs';

process.env.SUPPRESS_TRANSFORMATION_WARNINGS = '1';

const peers = [
    { name: '@ag-ui/client 1.0.0', client: now, to: 'ag-ui', type: 'text/event-stream', current: true },
    { name: '@ag-ui/client 1.0.0 in protobuf', client: now, to: 'ag-ui-proto', type: 'application/vnd.ag-ui.event+proto', current: true },
    { name: '@ag-ui/client 0.0.59', client: before, to: 'ag-ui-0', type: 'text/event-stream' },
];

async function see({ client, to, type }, s) {
    const { url, close } = await serve(type, tell(s, to));
    const seen = { events: [] };
    const agent = new client.HttpAgent({ url, threadId: 't' });
    await agent.runAgent({}, {
        onEvent: ({ event }) => { seen.events.push(event); },
        onRunFailed: ({ error }) => { seen.failed = error; },
        onRunErrorEvent: ({ event }) => { seen.error = event; },
        onRunFinishedEvent: (params) => { seen.finished = params.event; },
    });
    close();
    return { ...seen, messages: agent.messages, state: agent.state };
}

const of = (messages, role) => messages.filter((m) => m.role === role);

for (const peer of peers) {
    for (const s of stories) {
        test(`${peer.name} reads ${s.name}`, async () => {
            const got = await see(peer, s);
            if (got.failed) throw got.failed;
            const said = of(got.messages, 'assistant').filter((m) => m.content);
            if (s.ends !== 'rejected' || s.text === undefined)
                equal(said.map((m) => m.content), s.texts ?? (s.text ? [s.text] : []), 'the texts');
            const calls = of(got.messages, 'assistant').flatMap((m) => m.toolCalls ?? []);
            equal(calls.map((c) => ({ id: c.id, name: c.function.name, arguments: JSON.parse(c.function.arguments) })), s.calls, 'the calls');
            check(new Set(of(got.messages, 'assistant').filter((m) => m.toolCalls).map((m) => m.id)).size <= 1, 'calls of one turn are in one message');
            equal(Object.fromEntries(of(got.messages, 'tool').map((m) => [m.toolCallId, m.content])), s.results, 'the results');
            equal(of(got.messages, 'reasoning').map((m) => m.content), s.thought ? [s.thought] : [], 'what was thought');
            if (s.shared) equal(got.state, s.shared, 'the state');
            const progress = of(got.messages, 'activity').map((m) => m.content.text);
            if (s.progress) equal(progress, [s.progress], 'the progress');
            ends(peer, s, got);
        });
    }
}

function ends(peer, s, got) {
    const cancelled = s.ends === 'cancelled';
    if (s.ends === 'failed' || s.ends === 'rejected' || (cancelled && !peer.current)) {
        check(got.error && !got.finished, `it ends with ${JSON.stringify(got.error ?? got.finished)}`);
        equal(got.error.code, s.ends, 'the code');
        if (s.error) equal(got.error.message, s.error, 'the message');
        return;
    }
    check(got.finished && !got.error, `it ends with ${JSON.stringify(got.error ?? got.finished)}`);
    if (s.ends === 'interrupt') equal(got.finished.outcome.interrupts.map((i) => i.message), [s.text], 'the question');
    if (cancelled) equal(got.finished.outcome, { type: 'cancelled' }, 'the outcome');
    if (s.ends === 'pending' && peer.current) equal(got.finished.outcome.pendingToolCallIds, s.calls.map((c) => c.id), 'calls that wait');
    if (s.usage && peer.to !== 'ag-ui-proto') equal(got.finished.usage[0].inputTokens, s.usage[0], 'the usage');
}

await run();
