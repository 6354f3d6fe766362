package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
)

const (
	// resolveLimit limits the time in which the DNS names of a request are resolved.
	resolveLimit = 3 * time.Second
	// laterDelay is the time after which a request that no source vouches for is decided again, because
	// the status of a Node and DNS may follow the request.
	laterDelay = time.Minute
)

// errResolving means that enough workers wait for DNS.
var errResolving = errors.New("resolve DNS names: other requests wait for DNS")

// Resolver resolves DNS names. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// findMissing resolves the DNS names without which a question cannot be answered, and answers it. It is
// an error if a fact is still missing.
func (c *Controller) findMissing(ctx context.Context, q *approve.Question, names []string) (approve.Answer, error) {
	var failed error
	if len(names) > 0 {
		q.Resolved, failed = c.resolve(ctx, names)
	}
	answer, err := c.answer(q)
	switch {
	case err != nil:
		return approve.Answer{}, err
	case answer.Missing != nil && (failed != nil || answer.Missing.Machines != nil):
		return approve.Answer{}, errors.Join(answer.Missing.Machines, failed)
	case answer.Missing != nil:
		return approve.Answer{}, errors.New(answer.Message)
	}
	return answer, nil
}

// resolve returns the addresses of DNS names, none of a name that does not exist. Names that could
// not be resolved are missing, and failed is the last error. Half of the workers wait for DNS at most,
// so that requests without DNS names are decided while DNS does not answer.
func (c *Controller) resolve(ctx context.Context, names []string) (resolved map[string][]netip.Addr, failed error) {
	select {
	case c.resolving <- struct{}{}:
		defer func() { <-c.resolving }()
	default:
		return nil, errResolving
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	resolved = map[string][]netip.Addr{}
	for _, name := range names {
		if _, known := resolved[name]; known {
			continue
		}
		addresses, err := c.addressesOf(ctx, name)
		if err != nil {
			failed = fmt.Errorf("resolve the DNS name %s: %w", name, err)
			continue
		}
		resolved[name] = addresses
	}
	return resolved, failed
}

// addressesOf resolves a DNS name as an absolute one, because names in the search domains of a pod
// belong to others. The families are resolved one by one, because a resolver that gets an answer
// about one of them may not report an error about the other.
func (c *Controller) addressesOf(ctx context.Context, name string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, family := range []string{"ip4", "ip6"} {
		addresses, err := c.opts.Resolver.LookupNetIP(ctx, family, name+".")
		if dns, ok := errors.AsType[*net.DNSError](err); err != nil && !(ok && dns.IsNotFound) {
			return nil, err
		}
		all = append(all, addresses...)
	}
	return all, nil
}

// nodeAddressesOf indexes nodes: the name, and the names and addresses in the status, in the form in which
// sources vouch for them.
func nodeAddressesOf(object any) ([]string, error) {
	node := object.(*corev1.Node)
	all := []string{node.Name}
	for _, address := range node.Status.Addresses {
		text := strings.ToLower(strings.TrimSuffix(address.Address, "."))
		if a, err := netip.ParseAddr(text); err == nil {
			text = a.Unmap().String()
		}
		all = append(all, text)
	}
	return all, nil
}

// otherNode returns the name of another node that has a DNS name or an IP address; empty if there is none.
func (c *Controller) otherNode(node, nameOrAddress string) string {
	holders, _ := c.nodes.ByIndex(byAddress, nameOrAddress) // the index exists
	for _, object := range holders {
		if other := object.(*corev1.Node); other.Name != node {
			return other.Name
		}
	}
	return ""
}

// servedNodeOf indexes undecided requests for serving certificates by node.
func servedNodeOf(object any) ([]string, error) {
	if r := object.(*request); !r.decided && r.claim.Kind == approve.Serving {
		return []string{r.claim.Node}, nil
	}
	return nil, nil
}

// newerRequests returns how many undecided requests of a node for serving certificates are newer than one.
func (c *Controller) newerRequests(than metav1.Object, node string) int {
	newer := 0
	requests, _ := c.requests.ByIndex(byServed, node) // the index exists
	for _, object := range requests {
		r, created := object.(*request), than.GetCreationTimestamp()
		switch order := r.CreationTimestamp.Compare(created.Time); {
		case order > 0, order == 0 && r.Name > than.GetName():
			newer++
		}
	}
	return newer
}

// decideLater lets a request that no source vouches for be decided again later, if it is one of the
// newest ones of its node.
func (c *Controller) decideLater(r *request) {
	if t := c.term.Load(); t != nil && c.newerRequests(r, r.claim.Node) < approve.MostUndecided {
		t.requests.AddAfter(r.Name, laterDelay)
	}
}
