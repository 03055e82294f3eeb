// The programs of docs/clients/openai.md and curl.md, run unchanged; their output is compared with the text below them.
import { run, test } from '../server/node/lib/tap.mjs';
import { page } from './lib/docs.mjs';
import { live } from './lib/live.mjs';

const server = await live();
page('docs/clients/openai.md', () => server.url, 10);
page('docs/clients/curl.md', () => server.url, 10);
test('docs: the server ends well', () => server.stop());
await run();
