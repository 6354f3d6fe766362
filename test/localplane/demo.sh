#!/usr/bin/env bash
# Shows node-authorizer. The first answers come from a snapshot, with a small program that
# uses the library and builds in half a minute. Meanwhile the command line and the programs
# of a control plane are built. Then the same questions are asked of a real cluster: two
# hollow nodes join, the small web shop of examples/shop runs on them, and node-authorizer
# says what each node may read and why. Last, a careless DaemonSet opens a path from each
# node to the whole cluster, and one change closes it. The script stops everything when it
# ends, also on Ctrl-C.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

work=$(mktemp -d "${TMPDIR:-/tmp}/node-authorizer-demo.XXXXXX")
export LOCALPLANE_DIR=$work/plane
builder=

# Called once, however the script ends. After an error, the logs are kept.
clean_up() {
	local status=$?
	trap - EXIT INT TERM HUP
	if [[ -n $builder ]]; then
		kill -- "-$builder" 2>/dev/null || true
	fi
	if [[ -e $LOCALPLANE_DIR ]]; then
		say "Stop the control plane"
		"$work/localplane" down || status=1
	fi
	case $status in
	0 | 130 | 143) rm -rf "$work" ;;
	*) echo "the demo ended with status $status; the logs are in $LOCALPLANE_DIR/logs" >&2 ;;
	esac
	exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say() {
	printf '\n### %s\n' "$*"
}

# Prints a command as one would type it, then runs it. The first argument is the
# expected exit status.
run() {
	local expected=$1 status=0
	shift
	printf '\n$ %s\n' "$*"
	"$@" || status=$?
	if ((status != expected)); then
		echo "\"$*\" ended with status $status, not $expected" >&2
		exit 1
	fi
}

# The names under which the demo calls its programs.
node-authorizer() { "$root/bin/node-authorizer" "$@"; }
localplane() { "$work/localplane" "$@"; }
ask() { "$work/ask" "$@"; }

# Starts a build in the background, with its output in a file. It has a process group of
# its own, so that it can be ended as a whole.
start() {
	set -m
	"$@" >"$work/build.log" 2>&1 &
	builder=$!
	set +m
}

# Waits until the build ends, and shows how far it is: on a terminal on one line, else twice
# a minute.
finish() {
	local what=$1 begin=$SECONDS elapsed=0
	while kill -0 "$builder" 2>/dev/null; do
		sleep 1
		elapsed=$((SECONDS - begin))
		if [[ -t 1 ]]; then
			printf '\r\033[K%s: %d s, %s' "$what" "$elapsed" "$(progress)"
		elif ((elapsed % 30 == 0)); then
			printf '%s: %d s, %s\n' "$what" "$elapsed" "$(progress)"
		fi
	done
	[[ -t 1 ]] && printf '\r\033[K'
	if ! wait "$builder"; then
		builder=
		echo "$what failed:" >&2
		tail -n 40 "$work/build.log" >&2
		exit 1
	fi
	builder=
	printf '%s: done after %d s\n' "$what" "$elapsed"
}

# How far the build is: the program of the control plane that is being built, or how many
# packages are compiled. Go compiles only those that its cache does not have.
progress() {
	local program
	program=$(grep -a '^\[.*\.\.\.$' "$work/build.log" | tail -n 1) || true
	echo "${program:-$(grep -ac / "$work/build.log") packages compiled}"
}

build_ask() { cd "$root" && go build -v -o "$work/ask" ./examples/library; }

build_node_authorizer() { make -C "$root" build GOFLAGS=-v; }

build_localplane() {
	cd "$here"
	go build -o "$work/localplane" ./cmd/localplane
	"$work/localplane" build
}

cd "$root"
shop=examples/shop.snapshot

say "First answers: from $shop, the saved state of a cluster with a web shop"
start build_ask
finish "Build a small program that uses the library"

say "The node that runs the payments may read the key of the card processor, and this is the path"
run 0 ask $shop pay-1 secrets payments/card-processor

say "The web node may not"
run 0 ask $shop web-1 secrets payments/card-processor

say "The disk of the catalog has a Secret that no pod names. The web node reads it, through the volume"
run 0 ask $shop web-1 secrets shop/image-disk

say "The command line says more. It takes two or three minutes to build"
start build_node_authorizer
finish "Build node-authorizer"

say "Now build etcd, kube-apiserver and the kubelet, once, in the background: five to ten minutes"
start build_localplane

say "Meanwhile: why may the web node not read the key of the card processor?"
run 1 node-authorizer explain get secret/card-processor -n payments --node web-1 --from $shop

say "What can an attacker on the web node reach?"
run 0 node-authorizer reach web-1 --from $shop

say "Which nodes reach the Secret of the catalog's disk?"
run 0 node-authorizer who-can get secret/image-disk -n shop --from $shop

say "Then the same on a real control plane"
finish "Build the control plane"

say "Start it with a node for the web shop and one for payments"
run 0 localplane up --node web-1:pool=web --node pay-1:pool=payments
export KUBECONFIG=$LOCALPLANE_DIR/kubeconfig/admin.kubeconfig

say "Run a small web shop on them"
run 0 localplane apply -f examples/shop
run 0 localplane wait

say "Save the state of the cluster to a file, without the values of Secrets"
cd "$work"
run 0 node-authorizer snapshot -o shop.snapshot

say "The node that runs the payments may read the key of the card processor"
run 0 node-authorizer can-i get secret/card-processor -n payments --node pay-1

say "The web node may not, and exit status 1 says so too"
run 1 node-authorizer can-i get secret/card-processor -n payments --node web-1

say "Which nodes reach the Secret of the catalog's disk? The snapshot answers this too"
run 0 node-authorizer who-can get secret/image-disk -n shop --from shop.snapshot

say "Somebody wants to install a log agent on every node. What would nodes reach that they do not reach now?"
agent=$root/examples/careless-agent
cp "$agent"/*.yaml .
run 1 node-authorizer diff --from shop.snapshot --with agent.yaml

say "It is installed without that check. How does an attacker on the web node get the whole cluster?"
run 0 localplane apply -f agent.yaml
run 0 localplane wait
run 1 node-authorizer attack-paths node/web-1 --to cluster-admin

say "Which one change helps most nodes?"
run 1 node-authorizer attack-paths --all-nodes --what-to-change

say "A role without the verbs that the agent does not need closes the path. Is there another one?"
run 0 node-authorizer diff --with role.yaml

say "Make this change, and look again"
run 0 localplane apply -f role.yaml
run 0 node-authorizer attack-paths node/web-1 --to cluster-admin
