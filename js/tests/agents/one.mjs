import { agent } from 'dragoman';
export default agent(async function* (turn) {
    yield 'a ';
    yield turn.text;
});
