// The agent of test_function_replay.py in JavaScript: the first word of the message says what it does.
import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { agent } from 'dragoman';

/** Everything that an agent can send, and a crash between two steps and their next output. */
async function report(turn, gate) {
    await turn.progress('first');
    if (turn.metadata.steps) await turn.step('step', () => 1);
    await turn.reasoning('Hm. ');
    await turn.toolCall('look_up', { city: 'Oslo' }, () => 'snow');
    await turn.custom('mine', { n: 1 });
    turn.state.days = 2;
    for (const [i, text] of ['a', 'b'].entries())
        await turn.emit({ artifactUpdate: { artifact: { artifactId: 'chart', parts: [{ text }] }, append: i > 0, lastChunk: false } });
    await turn.file('small.txt', 'content');
    await turn.file('large.bin', Buffer.alloc(200_000, 'x'));
    await turn.write('one ');
    const call = turn.toolCall('slow', {});
    writeFileSync(`${gate}.${process.pid}`, '');
    while (!existsSync(gate)) await sleep(20, undefined, { signal: turn.signal });
    await call.succeeded('done');
    await turn.emit({ artifactUpdate: { artifact: { artifactId: 'chart', parts: [{ text: 'c' }] }, append: true, lastChunk: true } });
    await turn.progress('second');
    await turn.write('two');
}

const commands = {
    report,
    async asks(turn, gate) {
        await turn.progress('before the question');
        await turn.ask('Which?');
        await report(turn, gate);
    },
    /** A journal of many lines, which comes back whole. */
    async large(turn, size) {
        const values = [];
        for (let i = 0; i < 3; i++) values.push(await turn.step('s', () => String.fromCharCode(0xe4 + i).repeat(Number(size))));
        const answer = await turn.ask('Which?');
        await turn.write(`${answer} [${values.map((v) => `'${v[0]}${v.length}'`).join(', ')}]`);
    },
    async file(turn, size) {
        const pattern = Buffer.from(Array.from({ length: 251 }, (_, i) => i));
        try {
            await turn.file('large.bin', Buffer.concat([...Array(Math.floor(Number(size) / 251)).fill(pattern), Buffer.from('end')]));
        } catch (error) {
            await turn.write(error.message);
        }
    },
};

export default agent(async (turn) => {
    const at = turn.text.indexOf(' ');
    await commands[turn.text.slice(0, at)](turn, turn.text.slice(at + 1));
});
