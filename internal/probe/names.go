package probe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
)

const prefix = "node-authorizer-probe-"

// attempts is how often names are drawn until no node has them.
const attempts = 3

// madeUpNodes draws names until no node has them.
func (p *prober) madeUpNodes(ctx context.Context) error {
	for range attempts {
		drawn, err := draw()
		if err != nil {
			return err
		}
		switch exists, a := p.existing(ctx, drawn.node, drawn.other); {
		case a != nil:
			p.names = drawn
			p.unnamed = "whether the made-up nodes exist could not be asked: " + a.String()
			if a.refused(http.StatusForbidden) {
				p.lacks, p.remedy = "nodes", "bind a role with the verb get on nodes to the user"
			}
			p.lacking(p.lacks, p.remedy, "%s", p.unnamed)
			return nil
		case !exists:
			p.names = drawn
			p.conclude(Holds, "the API server has neither of two nodes with random names")
			return nil
		}
	}
	p.unnamed = "nodes with random names exist, as if the API server made up its answers"
	p.conclude(Undetermined, "%s", p.unnamed)
	return nil
}

// existing asks for nodes by name. It returns an answer that does not tell.
func (p *prober) existing(ctx context.Context, nodes ...string) (exists bool, unclear *answer) {
	for _, name := range nodes {
		switch a := p.do(ctx, request{method: http.MethodGet, path: "/api/v1/nodes/" + name, unread: true}); {
		case a.ok():
			return true, nil
		case !a.refused(http.StatusNotFound):
			return false, a
		}
	}
	return false, nil
}

func draw() (names, error) {
	var random [6]string
	for i := range random {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return names{}, err
		}
		random[i] = prefix + hex.EncodeToString(b[:])
	}
	return names{
		node: random[0], other: random[1], secret: random[2], user: random[3], pod: random[4],
		audience: "https://" + random[5] + ".invalid",
	}, nil
}
