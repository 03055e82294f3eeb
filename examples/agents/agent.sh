#!/bin/sh
# An agent for `type: exec` with `input: text` and `output: text`: the message's text comes on stdin, each
# line on stdout is a chunk of the answer, sent on as it is written. The exit status says how it went, stderr
# goes to the server's log, and a cancel is a SIGTERM.
text=$(cat)
case $text in
    "count "*)
        i=1
        while [ "$i" -le "${text#count }" ]; do
            echo "$i"
            sleep 0.1
            i=$((i + 1))
        done
        ;;
    fail)
        echo "half an answer"
        echo "what went wrong is for the operator's eyes" >&2
        exit 1
        ;;
    *) printf 'You said: %s\n' "$text" ;;
esac
