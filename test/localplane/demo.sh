#!/usr/bin/env bash
# Shows node-authorizer on a real control plane: two hollow nodes join, the
# small web shop of examples/shop runs on them, and node-authorizer says what
# each node may read and why. Then a careless DaemonSet opens a path from each
# node to the whole cluster, and one change closes it. Stops everything when it
# ends, also on Ctrl-C.
#
# NODE_AUTHORIZER is the path of the node-authorizer program.
set -euo pipefail

: "${NODE_AUTHORIZER:?set it to the path of the node-authorizer program; \"make demo\" builds it and does so}"
NODE_AUTHORIZER=$(realpath "$NODE_AUTHORIZER")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

work=$(mktemp -d "${TMPDIR:-/tmp}/node-authorizer-demo.XXXXXX")
export LOCALPLANE_DIR=$work/plane

# Called once, however the script ends. After an error, the logs are kept.
clean_up() {
	local status=$?
	trap - EXIT INT TERM HUP
	if [[ -x $work/localplane ]]; then
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
node-authorizer() { "$NODE_AUTHORIZER" "$@"; }
localplane() { "$work/localplane" "$@"; }

(cd "$here" && go build -o "$work/localplane" ./cmd/localplane)

say "Start a control plane with a node for the web shop and one for payments"
run 0 localplane up --node web-1:pool=web --node pay-1:pool=payments
export KUBECONFIG=$LOCALPLANE_DIR/kubeconfig/admin.kubeconfig

cd "$root"
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

say "Why not?"
run 1 node-authorizer explain get secret/card-processor -n payments --node web-1

say "What can an attacker on the web node reach? The snapshot answers this too"
run 0 node-authorizer reach web-1 --from shop.snapshot

say "Which nodes reach the Secret of the catalog's disk, which no pod names?"
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
