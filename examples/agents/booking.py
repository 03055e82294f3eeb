"""An agent that asks. Each answer may come hours later, also after a restart of the server: the function then runs again from
the top, the recorded answers are returned, and steps that were done are not repeated.

    dragoman try booking.py "a table for tonight"
"""
import datetime

from dragoman.agent import Rejected, SyncTurn, agent

TABLES = {"inside": 4, "outside": 2}  # free seats


def reserve(place: str, people: int) -> dict:
    """In place of a call of another system. It must not happen twice."""
    TABLES[place] -= people
    return {"number": 4711, "place": place, "people": people, "at": datetime.datetime.now().isoformat(timespec="minutes")}


@agent(name="Booking", description="Books a table")
def book(turn: SyncTurn) -> None:
    if "table" not in turn.text:
        raise Rejected("I only book tables.")
    turn.write("Gladly. ")
    people = 0
    while not 1 <= people <= 4:
        answer = turn.ask("For how many people?")
        people = int(answer) if answer.isdecimal() else 0
    place = turn.ask("Inside or outside?", choices=["inside", "outside"])
    turn.progress("Reserving")
    booking = turn.step("reserve", reserve, place.strip().lower(), people)
    turn.data(booking, name="booking")
    turn.file("booking.txt", f"Booking {booking['number']}: {people} people, {place}\n")
    turn.write(f"Booked: {people} people, {place}, number {booking['number']}.")
