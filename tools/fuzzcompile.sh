#!/bin/sh
# Runs a tool of the Go toolchain, for `go test -fuzz -toolexec`. The fuzzer reads the counters of all packages
# after each execution: nine tenths of them are in libraries whose branches say nothing about our inputs. So
# only our packages, and those that read text, are compiled with the flag that makes counters.
#
#   fuzzcompile.sh TOOL ARGUMENT...

if [ "$2" = -V=full ]; then # the go command asks for the identity of what compiles
	printf '%s, by %s\n' "$("$@")" "$(cksum <"$0")"
	exit
fi
case $TOOLEXEC_IMPORTPATH in
github.com/node-authorizer/* | encoding/* | net/url | *json* | *yaml*) exec "$@" ;;
esac
for argument; do
	shift
	[ "$argument" = -d=libfuzzer ] || set -- "$@" "$argument"
done
exec "$@"
