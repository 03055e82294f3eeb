// A server that answers with the stories as Responses: the model's name is the story's. A request with the outputs
// of calls gets the part of the story after them.
import { convert, serve, sse, story } from './world.mjs';

const has_outputs = (input) => Array.isArray(input) && input.some((item) => item.type === 'function_call_output');

export const server = () => serve((body, path) => {
    if (!path.endsWith('/responses')) throw new Error(`no such path: ${path}`);
    const { events, then } = story(body.model);
    const said = sse(then && has_outputs(body.input) ? then : events);
    return body.stream ? { stream: convert('a2a-1.0', 'openai-responses', said) }
        : { json: convert('a2a-1.0', 'openai-responses', said, '--as', 'response') };
});
