#!/bin/sh
# Calls a tool. Our Node with its own libraries, for an image may have none.
lib=/opt/airlock/closure/lib
exec "$lib/ld.so" --inhibit-cache --library-path "$lib" /opt/airlock/bin/node --openssl-config=/dev/null /opt/airlock/airlock-tool.cjs "$@"
