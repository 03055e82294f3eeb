import { useMemo, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useChat } from '@ai-sdk/react';
import { cancel, openChat, partsToShow } from './chat.js';

const server = new URLSearchParams(location.search).get('server') ?? 'http://127.0.0.1:8484';
const api = `${server}/ai-sdk`;

// The chat's id is in the address: whoever loads it again has the same chat.
if (!location.hash) location.replace(`#${crypto.randomUUID()}`);
const id = decodeURIComponent(location.hash.slice(1));

// What the agent may ask this page to do; say `client-tool` to the demo agent.
const tools = { get_weather: ({ location }) => `Foggy in ${location}, 57°F` };

function Tool({ part }) {
    const name = part.toolName ?? part.type.slice('tool-'.length);
    return (
        <div className="tool" data-state={part.state}>
            <b>{name}</b> <code>{JSON.stringify(part.input)}</code>
            {part.state === 'output-available' && <output>{JSON.stringify(part.output)}</output>}
            {part.state === 'output-error' && <output>{part.errorText}</output>}
        </div>
    );
}

function Part({ part }) {
    if (part.type === 'text') return <p className="answer">{part.text}</p>;
    if (part.type === 'reasoning') return <details className="reasoning"><summary>Thoughts</summary>{part.text}</details>;
    if (part.type === 'dynamic-tool' || part.type.startsWith('tool-')) return <Tool part={part} />;
    if (part.type === 'data-a2a-artifact') return <pre className="artifact">{JSON.stringify(part.data.parts, null, 1)}</pre>;
    if (part.type === 'file')
        return part.mediaType.startsWith('image/') ? <img className="file" src={part.url} alt="" /> : <a className="file" href={part.url}>{part.mediaType}</a>;
    return null;
}

/** What the agent is doing is no part of what it says. */
function Status({ message }) {
    const status = message.parts.find((p) => p.type === 'data-a2a-status');
    return status?.data.text ? <p className="status">{status.data.text}</p> : null;
}

function Message({ message }) {
    return (
        <article className={message.role} data-outcome={message.metadata?.state}>
            {partsToShow(message).map((part, i) => <Part key={i} part={part} />)}
            <Status message={message} />
        </article>
    );
}

function Page() {
    const chat = useMemo(() => openChat({ api, id, tools }), []);
    const { messages, sendMessage, status, error } = useChat({ chat, resume: true });
    const [words, setWords] = useState('');
    const busy = status === 'submitted' || status === 'streaming';
    const send = (event) => {
        event.preventDefault();
        sendMessage({ text: words });
        setWords('');
    };
    return (
        <main data-status={status}>
            <section id="talk">{messages.map((m) => <Message key={m.id} message={m} />)}</section>
            {error && <p id="error" role="alert">{error.message}</p>}
            <form onSubmit={send}>
                <input id="words" value={words} onChange={(e) => setWords(e.target.value)} placeholder="help" autoFocus />
                {busy ? <button id="stop" type="button" onClick={() => cancel({ api, chat })}>Stop</button> : <button id="send">Send</button>}
            </form>
        </main>
    );
}

createRoot(document.getElementById('root')).render(<Page />);
