// Stands in for CopilotKit's runtime, which is too much to install for one line: what it is given it clones and runs, one agent after
// the other, as the runtime does with each request.
import { register } from 'node:module';

const runtime = `export class CopilotRuntime {
    constructor({ agents }) { this.run(agents); }
    async run(agents) {
        for (const [name, agent] of Object.entries(agents)) {
            const one = agent.clone();
            one.addMessage({ id: 'u', role: 'user', content: 'message hi' });
            await one.runAgent();
            console.log(name + ': ' + one.messages.at(-1).content.split('\\n')[0]);
        }
    }
}`;
const url = `data:text/javascript,${encodeURIComponent(runtime)}`;
register(`data:text/javascript,${encodeURIComponent(`export const resolve = (name, context, next) =>
    name === '@copilotkit/runtime' ? { url: ${JSON.stringify(url)}, shortCircuit: true } : next(name, context);`)}`);
