import { Chat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls } from 'ai';

/** A chat with the agent at `api`, for instance http://127.0.0.1:8484/ai-sdk. */
export function openChat({ api, id, tools = {} }) {
    class Transport extends DefaultChatTransport {
        // When the page is loaded: first the answer in progress, then the stored messages. In this order, so that an
        // answer that ends between the two requests is among the messages.
        async reconnectToStream(options) {
            const stream = await super.reconnectToStream(options);
            const saved = await fetch(`${api}/${encodeURIComponent(id)}/messages`);
            if (saved.ok) {
                const stored = await saved.json();
                // The user may have sent a message while they were loaded.
                const added = chat.messages.filter((m) => !stored.some((s) => s.id === m.id));
                chat.messages = [...stored, ...added];
            }
            return stream;
        }
    }
    const chat = new Chat({
        id,
        transport: new Transport({ api }),
        // Tools that run in the page: the agent calls them, and continues with the result.
        onToolCall({ toolCall }) {
            const run = tools[toolCall.toolName];
            if (run) chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: run(toolCall.input) });
        },
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    });
    return chat;
}

/** stop() of the SDK only disconnects, and the agent continues; this ends its work. The stream then ends, too. */
export async function cancel({ api, chat }) {
    while (chat.status === 'submitted' || chat.status === 'streaming') {
        const answer = await fetch(`${api}/${encodeURIComponent(chat.id)}/cancel`, { method: 'POST' });
        if (!answer.ok) return chat.stop();
        if (answer.status === 200) return;
        await new Promise((again) => setTimeout(again, 100)); // 204: it has not started yet, or has just ended
    }
}

/** The parts to show: a text marked `instead` replaces the previous text. */
export function partsToShow(message) {
    const shown = [];
    for (const part of message.parts) {
        if (part.type === 'text' && part.providerMetadata?.dragoman?.instead) {
            const before = shown.findLastIndex((p) => p.type === 'text');
            if (before >= 0) shown.splice(before, 1);
        }
        shown.push(part);
    }
    return shown;
}
