// A LangGraph graph with a fake streaming model. `dragoman serve --langgraph ./langgraph.json` serves it to every client.
import { AIMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { MessagesAnnotation, START, StateGraph, interrupt } from '@langchain/langgraph';
import { emitData, emitTaskMetadata } from 'dragoman/langgraph';

const model = new FakeListChatModel({ responses: ['Oslo is the capital of Norway.'] });

/** Tokens of the model are streamed. */
async function answer(state) {
    return { messages: [await model.invoke(state.messages)] };
}

/** A question to the user, and data beside the answer. */
function rate(state, config) {
    emitTaskMetadata(config.writer, { progress: 50 });
    const stars = Number(interrupt('How many stars, 1 to 5?'));
    emitData(config.writer, { stars }, { name: 'rating' });
    return { messages: [new AIMessage(`Thank you for ${stars} stars.`)] };
}

export const graph = new StateGraph(MessagesAnnotation)
    .addNode('answer', answer)
    .addNode('rate', rate)
    .addEdge(START, 'answer')
    .addEdge('answer', 'rate')
    .compile();
