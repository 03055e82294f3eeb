// The validation of LangGraph's checkpointers, run by vitest, on DragomanSaver with a stand-in for the server. Once with values
// in the lines, once with every value in parts.
import * as checkpoint from '@langchain/langgraph-checkpoint';
import { validate } from '@langchain/langgraph-checkpoint-validation';
import { createSaverClass } from '../../../js/checkpointer.js';
import { Store } from '../../../js/tests/lib/driver.js';

const DragomanSaver = createSaverClass(checkpoint);

/** A connection to a store in this process; everything is JSON in between. */
const connectTo = (store, maxLineBytes) => ({
    maxLineBytes,
    request: async (method, params) => JSON.parse(JSON.stringify(store.handle(method, JSON.parse(JSON.stringify(params))))),
});

for (const [name, maxLineBytes, inlineBytes] of [['DragomanSaver', 8 << 20, Infinity], ['DragomanSaver, values in parts', 64, 1]])
    validate({
        checkpointerName: name,
        createCheckpointer: () => new DragomanSaver(connectTo(Object.assign(new Store(), { inlineBytes }), maxLineBytes)),
    });
