// Agents for the tests of the worker.
import { agent, Failed, Rejected } from '../../agent.js';

export const echo = agent({ name: 'Echo', description: 'repeats', skills: [{ id: 'e', name: 'E' }] }, async (turn) => {
    console.log('prints', turn.text);
    for (const word of turn.text.split(' ')) await turn.write(`${word} `);
});
export const returns = agent(async (turn) => `You wrote: ${turn.text}`);
export const asks = agent(async (turn) => {
    await turn.write('Before. ');
    const name = await turn.ask('Your name?');
    await turn.write(`Hello ${name}`);
});
export const beside = agent(async (turn) => {
    const report = async () => {
        for (let i = 0; i < 20; i++) {
            turn.progress(`${i}`);
            await null;
        }
    };
    await Promise.all([turn.step('s', () => 1), report()]);
});
export const steered = agent(async (turn) => {
    await turn.write('waiting');
    await turn.waitForMessage();
    return ` got ${turn.newMessages().map((m) => m.text).join()}`;
});
export const ends = agent(async (turn) => {
    if (turn.text === 'fail') throw new Failed('no paper');
    if (turn.text === 'reject') throw new Rejected('not on Sundays');
    if (turn.text === 'number') return 3;
    await turn.write('x');
    throw new TypeError('secret');
});
export const endless = agent(async (turn) => {
    await turn.write('start');
    for (;;) await turn.write('.');
});
export const deaf = agent(async (turn) => {
    await turn.write('start');
    await new Promise(() => setInterval(() => {}, 1000)); // does not watch turn.signal
});
export const flood = agent(async (turn) => {
    for (let i = 0; i < 200000; i++) turn.write('x'); // not awaited
});
export const plain = async (turn) => `plain ${turn.text}`; // not marked, chosen by its name
