// An agent of `@openai/agents` whose model is a live Dragoman agent: tools, chains, conversations, sessions.
import { Agent, OpenAIConversationsSession, OpenAIResponsesModel, Runner, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { live } from './lib/live.mjs';

const server = await live();
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
const runner = new Runner({ tracingDisabled: true });
const said = 'The tools say: 1=rain in Oslo, 2=noon in CET';

function agent(model, calls = []) {
    const named = (name, key, answer) => tool({
        name, description: name, parameters: z.object({ [key]: z.string() }),
        execute: async (args) => { calls.push([name, args]); return answer(args[key]); },
    });
    return new Agent({
        name: 'a', instructions: 'Be brief', model: new OpenAIResponsesModel(client, model),
        tools: [named('get_weather', 'city', (c) => `rain in ${c}`), named('get_time', 'zone', (z) => `noon in ${z}`)],
    });
}

for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole';

    async function go(model, input, options = {}, calls = []) {
        const result = await runner.run(agent(model, calls), input, { maxTurns: 3, stream, ...options });
        if (stream) {
            for await (const _ of result);
            await result.completed;
        }
        return result;
    }

    test(`@openai/agents: an answer (${how})`, async () => {
        const result = await go('demo', 'tools');
        equal(result.finalOutput, 'It is sunny in Oakland, 72°F.', 'the answer');
        equal(result.rawResponses.length, 1, 'the turns');
    });

    test(`@openai/agents: two tools at once are run, each once (${how})`, async () => {
        const calls = [];
        const result = await go('caller', 'go', {}, calls);
        equal(calls.map(([name]) => name).sort(), ['get_time', 'get_weather'], 'the calls');
        equal(result.finalOutput, said, 'the answer');
    });

    test(`@openai/agents: the same with previousResponseId (${how})`, async () => {
        const first = await go('demo', 'I am Ada');
        const result = await go('demo', 'ask', { previousResponseId: first.lastResponseId });
        equal(result.finalOutput, 'What is your name?', 'the question');
        const answer = await go('demo', 'Eve', { previousResponseId: result.lastResponseId });
        check(answer.finalOutput.startsWith('Hello Eve'), answer.finalOutput);
    });

    test(`@openai/agents: tools within a conversation (${how})`, async () => {
        const { id } = await client.conversations.create();
        const result = await go('caller', 'go', { conversationId: id });
        equal(result.finalOutput, said, 'the answer');
        const types = (await client.conversations.items.list(id, { order: 'asc' })).data.map((i) => i.type);
        equal(types, ['message', 'function_call', 'function_call', 'function_call_output', 'function_call_output', 'message'], 'its items');
    });

    test(`@openai/agents: a session of OpenAI's conversations (${how})`, async () => {
        const session = new OpenAIConversationsSession({ client });
        equal((await go('demo', 'tools', { session })).finalOutput, 'It is sunny in Oakland, 72°F.', 'the first answer');
        const second = await go('demo', 'stream', { session });
        check(second.finalOutput.startsWith('An A2A task is a small story'), second.finalOutput);
        const items = await session.getItems();
        equal(items.filter((i) => i.role === 'user').length, 2, 'the texts of the user');
        check(items.length >= 4, 'and what was answered');
        await session.popItem();
        equal((await session.getItems()).length, items.length - 1, 'the last one is gone');
        await session.clearSession();
    });
}

test('@openai/agents: a failure is one', async () => {
    check((await failure(runner.run(agent('demo'), 'fail', { maxTurns: 2 }))).message, 'it says something');
});

test('@openai/agents: the server ends well', () => server.stop());
await run();
