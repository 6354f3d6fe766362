package webhookcluster

import (
	"path/filepath"

	"github.com/node-authorizer/node-authorizer/test/e2e/faultproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// Replica is one server.
type Replica struct {
	*server.Server
	// Watches is the proxy between the server and kube-apiserver.
	Watches *faultproxy.Proxy

	name string
}

func newReplica(p *localplane.Plane, name, dir string) (*Replica, error) {
	r := &Replica{name: name}
	var err error
	if r.Server, err = server.New(p, name, filepath.Join(dir, name)); err != nil {
		return nil, err
	}
	r.Watches, err = faultproxy.Listen(hostOf(p.Server()))
	return r, err
}
