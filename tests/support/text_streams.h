/*
 * support/text_streams.h - texts that an agent streams in `working` statuses, and the answer that they add up to.
 *
 * Everything that decides whether a piece of text is new is tested with these rows: the router of pieces (model),
 * canonical events (canon), the final text that the server adds (backend), every frontend and `dragoman send`
 * (tests/wire/test_texts.py, which reads this file: a row is one line).
 *
 * X(name, pieces, final, answer, streamable): pieces are separated by '|'; "+m1 Hel" is a chunk of the message m1,
 * "=m1 Hello" its End. final: the text of the `completed` status, "" for none. streamable: 1 if the deltas, one
 * behind the other, are the answer; 0 if text that was streamed turns out to be another, which a stream that only
 * adds cannot say.
 */
#pragma once

/* clang-format off */
#define TEXT_STREAMS(X) \
    X("an End repeats its chunks", "+m1 Hel|+m1 lo|=m1 Hello", "", "Hello", 1) \
    X("an End has more than its chunks", "+m1 Hel|+m1 lo|=m1 Hello you", "", "Hello you", 1) \
    X("an End replaces its chunks", "+m1 Hel|+m1 lo|=m1 Bye", "", "Bye", 0) \
    X("an End without text", "+m1 Hel|+m1 lo|=m1 ", "", "Hello", 1) \
    X("two messages in a row", "+m1 a|+m1 b|=m1 ab|+m2 x|+m2 y|=m2 xy", "", "ab\n\nxy", 1) \
    X("two messages in turns", "+m1 a|+m2 x|+m1 b|+m2 y|=m1 ab|=m2 xy", "", "ab\n\nxy", 1) \
    X("two messages in turns, ended in the other order", "+m1 a|+m2 x|+m1 b|+m2 y|=m2 xy|=m1 ab", "", "ab\n\nxy", 1) \
    X("two messages in turns, without Ends", "+m1 a|+m2 x|+m1 b|+m2 y", "", "ab\n\nxy", 1) \
    X("two messages in a row, without Ends", "+m1 a|+m1 b|+m2 x|+m2 y", "", "ab\n\nxy", 1) \
    X("two Ends without chunks", "=m1 First.|=m2 Second.", "", "First.\n\nSecond.", 1) \
    X("chunks without an End", "+m1 Hel|+m1 lo", "", "Hello", 1) \
    X("one chunk", "+m1 Hello", "", "Hello", 1) \
    X("an id for every chunk", "+m1 Hel|+m2 lo|+m3 !", "", "Hello!", 1) \
    X("an id for both chunks", "+m1 Hel|+m2 lo", "", "Hello", 1) \
    X("an id for every chunk, and an End", "+m1 Hel|+m2 lo|=m3 Hello", "", "Hello", 1) \
    X("an id for every chunk, and Ends", "+m1 a|+m2 b|+m3 c|=m4 abc|+m5 x|+m6 y|=m7 xy", "", "abc\n\nxy", 1) \
    X("a chunk, and the End of another message", "+m1 Looking it up.|=m2 It is 72.", "", "Looking it up.\n\nIt is 72.", 1) \
    X("three messages in turns", "+m1 a|+m2 x|+m3 p|+m1 b|=m1 ab|=m2 x|=m3 p", "", "ab\n\nx\n\np", 0) \
    X("pieces that repeat the text so far", "+m1 Hel|+m1 Hello|+m1 Hello you", "", "Hello you", 1) \
    X("pieces that only seemed to", "+m1 ho|+m1 hop|+m1 !", "", "hohop!", 0) \
    X("a final text that repeats the chunks", "+m1 Hel|+m1 lo", "Hello", "Hello", 1) \
    X("a final text that has more", "+m1 Hello|+m2  world", "Hello world!", "Hello world!", 1) \
    X("a final text that repeats an End", "+m1 Hel|+m1 lo|=m1 Hello", "Hello", "Hello", 1) \
    X("a final text that repeats two messages", "+m1 a|+m2 x|+m1 b|+m2 y|=m1 ab|=m2 xy", "ab\n\nxy", "ab\n\nxy", 1)
/* clang-format on */

struct text_stream {
    const char *name, *pieces, *final, *answer;
    int streamable;
};

#define TEXT_STREAM_ROW(name, pieces, final, answer, streamable)                                   \
    {name, pieces, final, answer, streamable},
static const struct text_stream text_streams[] = {TEXT_STREAMS(TEXT_STREAM_ROW)};
#define N_TEXT_STREAMS (sizeof text_streams / sizeof *text_streams)

/* The next piece of a row, or false. */
static inline bool text_stream_next(const char **at, bool *ret_end, dgm_str *ret_id,
                                    dgm_str *ret_text)
{
    const char *p = *at;
    if (!*p)
        return false;
    *ret_end = *p++ == '=';
    *ret_id = (dgm_str){p, strcspn(p, " ")};
    p += ret_id->n + 1;
    *ret_text = (dgm_str){p, strcspn(p, "|")};
    p += ret_text->n;
    *at = *p ? p + 1 : p;
    return true;
}
