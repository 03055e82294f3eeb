#!/bin/sh
# An agent that stops half way: it says `one `, waits until the file that the message names is there,
# and says `two` and `three`. So a test decides when the second half comes, not a clock.
read -r gate
echo 'one '
until [ -e "$gate" ]; do sleep 0.05; done
echo 'two '
echo 'three'
