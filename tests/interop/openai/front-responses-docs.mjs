// The programs of docs/clients/responses.md, run unchanged; their output is compared with the text below them.
import { run, test } from '../server/node/lib/tap.mjs';
import { page } from './lib/docs.mjs';
import { live } from './lib/live.mjs';

const server = await live();
page('docs/clients/responses.md', () => server.url, 8);
test('docs: the server ends well', () => server.stop());
await run();
