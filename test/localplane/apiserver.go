package localplane

import (
	"context"
	"fmt"
)

// OtherAPIServer is another kube-apiserver of the plane, as on a further machine of a highly available
// control plane. It has the same store, certificates and flags as the first one, and its own port. No
// component uses it.
type OtherAPIServer struct {
	*Program
	// Server is its address, for example https://127.0.0.1:20007.
	Server string
}

// AddAPIServer starts another kube-apiserver with a name that is unique in the plane, and waits until it is
// ready. The arguments are appended to the arguments of the first one; if a flag is repeated, the last one counts.
func (p *Plane) AddAPIServer(ctx context.Context, name string, args ...string) (*OtherAPIServer, error) {
	port, err := p.reserved.Take()
	if err != nil {
		return nil, fmt.Errorf("add the API server %q: %w", name, err)
	}
	client, err := probeClient(&p.certificates.ca.Pair, p.certificates.admin)
	if err != nil {
		return nil, fmt.Errorf("add the API server %q: %w", name, err)
	}
	server := loopback(port)
	program, err := p.AddProgram(ctx, name, ProgramOptions{
		Path:  p.binaries.Path(string(APIServer)),
		Args:  append(append(p.componentArgs(APIServer, p.apiServerArgs()), fmt.Sprintf("--secure-port=%d", port)), args...),
		Ready: func(ctx context.Context) error { return probe(ctx, client, server+"/readyz") },
	})
	if err != nil {
		return nil, err
	}
	return &OtherAPIServer{Program: program, Server: server}, nil
}
