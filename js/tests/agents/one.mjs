import { agent } from '../../agent.js';
export default agent(async function* (turn) {
    yield 'a ';
    yield turn.text;
});
