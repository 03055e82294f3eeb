// An agent that asks questions and calls a tool once, also if it is killed in between. Try it: dragoman try booking.mjs "Book a table"
import { randomUUID } from 'node:crypto';
import { agent, Failed } from 'dragoman';

const bookTable = ({ people }) => ({ people, number: randomUUID().slice(0, 8) });

export default agent({ name: 'Booking', description: 'Books a table.' }, async (turn) => {
    const people = Number((await turn.ask('For how many people?')).text);
    if (!Number.isInteger(people) || people < 1) throw new Failed('That is not a number of people.');
    if (!(await turn.approve('book_table', { people }))) return 'Nothing was booked.';
    // a step is not repeated when the function runs again
    const booking = await turn.toolCall('book_table', { people }, (args) => turn.step('book', bookTable, args));
    return `A table for ${booking.people} is booked: ${booking.number}.`;
});
