// An agent that streams the answer of a language model, here a fake one. Try it: dragoman try streaming.mjs "Where is Oslo?"
import { setTimeout as sleep } from 'node:timers/promises';
import { agent } from 'dragoman';

/** In place of a model: the stream of an OpenAI client has the same form. */
async function* fakeModel(messages, signal) {
    const { content } = messages[messages.length - 1];
    for (const word of `You asked: ${content}`.split(/(?<= )/)) {
        await sleep(10, undefined, { signal });
        yield { choices: [{ delta: { content: word } }] };
    }
    yield { choices: [], usage: { prompt_tokens: 5, completion_tokens: 7 } };
}

export default agent({ name: 'Streaming', description: 'Streams the answer of a model.' }, async (turn) => {
    for await (const chunk of fakeModel(turn.chat(), turn.signal)) {
        await turn.write(chunk.choices[0]?.delta.content ?? '');
        if (chunk.usage) await turn.usage({ inputTokens: chunk.usage.prompt_tokens, outputTokens: chunk.usage.completion_tokens, model: 'fake' });
    }
});
