// One export for each form in which a graph can be declared.
import { AIMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { createAgent } from 'langchain';

const answer = (text) => new StateGraph(MessagesAnnotation).addNode('node', async () => ({ messages: [new AIMessage(text)] })).addEdge(START, 'node');

export const compiled = answer('compiled').compile();
export const withSaver = answer('withSaver').compile({ checkpointer: new MemorySaver() });
export const uncompiled = answer('uncompiled');
export const promise = Promise.resolve(answer('promise').compile());
export const factory = () => answer('factory').compile();
export const factoryAsync = async () => answer('factoryAsync');
export const factoryConfig = async (config) => answer(`factoryConfig ${config.configurable.thread_id ?? 'at start'}`).compile();
export const wrapper = createAgent({ model: new FakeListChatModel({ responses: ['wrapper'] }), tools: [] });
export const notAGraph = 42;
export default answer('default').compile();
