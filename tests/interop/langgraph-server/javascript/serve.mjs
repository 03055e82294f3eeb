// The development server for JavaScript graphs, as `langgraphjs dev` starts it. Usage: serve.mjs PORT, in the folder of langgraph.json
import { readFileSync } from 'node:fs';
import { spawnServer } from '@langchain/langgraph-api';

const config = JSON.parse(readFileSync('langgraph.json', 'utf8'));
const child = await spawnServer({ host: '127.0.0.1', port: process.argv[2], nJobsPerWorker: '20', reload: false },
    { config, env: process.env, hostUrl: 'http://127.0.0.1' }, { pid: process.pid, projectCwd: process.cwd() });
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => child.kill('SIGTERM'));
child.on('exit', (code) => process.exit(code ?? 0));
