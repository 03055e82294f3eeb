const { AIMessage } = require('@langchain/core/messages');
const { MessagesAnnotation, START, StateGraph, interrupt } = require('@langchain/langgraph');

module.exports.graph = new StateGraph(MessagesAnnotation)
    .addNode('node', async () => ({ messages: [new AIMessage(`commonjs ${interrupt('Which?')}`)] }))
    .addEdge(START, 'node').compile();
