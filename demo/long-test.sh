#!/bin/sh
# Stands for tests that take long: demo/picture.py interrupts them.
number=0
while [ "$number" -lt 400 ]; do
    number=$((number + 1))
    echo "  test $number of 400"
    sleep 0.4
done
