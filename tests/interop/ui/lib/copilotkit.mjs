// Replaces CopilotKit's runtime, which is too large to install for one line: it clones and runs the agents one after
// the other, as the runtime does for each request.
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
