import { AIMessage } from '@langchain/core/messages';
import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';

enum Word { First = 'typescript' } // node's own stripping of types cannot read this

export const graph = new StateGraph(MessagesAnnotation)
    .addNode('node', async (state: typeof MessagesAnnotation.State) => ({ messages: [new AIMessage(`${Word.First} ${state.messages.length}`)] }))
    .addEdge(START, 'node').compile();
