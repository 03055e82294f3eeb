// The agent of test_node_agents.py. The first word of the message chooses what it does.
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { agent, Failed, Rejected } from 'dragoman';

const trace = (word) => process.env.TRACE && appendFileSync(process.env.TRACE, `${word}\n`);

export default agent({ name: 'Node agent' }, async (turn) => {
    const [word, rest] = turn.text.split(' ');
    if (word === 'count') for (let i = 0; i < Number(rest); i++) await turn.write(`${i} `);
    else if (word === 'history') return turn.history.map((m) => `${m.role}:${m.text}`).join('|');
    else if (word === 'ask') {
        await turn.write('Hello. ');
        const number = await turn.step('number', () => {
            trace('step');
            return 7;
        });
        const name = await turn.ask('Your name?'), color = await turn.ask('Which color?', { choices: ['red', 'blue'] });
        return `${name} likes ${color} and ${number}.`;
    } else if (word === 'slow') {
        await turn.write('one ');
        trace(`slow ${await turn.step('s', () => 1)}`);
        while (process.env.GATE && !existsSync(process.env.GATE)) await sleep(10, undefined, { signal: turn.signal });
        await turn.write('two');
    } else if (word === 'steer') {
        await turn.write('waiting');
        await turn.waitForMessage();
        return `, got ${turn.newMessages().map((m) => m.text)}`;
    } else if (word === 'file') await turn.file('a.txt', 'content');
    else if (word === 'fail') throw new Failed('no paper');
    else if (word === 'reject') throw new Rejected('not on Sundays');
    else if (word === 'exit') process.exit(3);
    else throw new Error('secret detail');
});
