package source

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// ListNodeNames lists the names of all Node objects of a partial State, in the order of the
// server, and reads only their metadata. Readable is false if the user may not list nodes;
// [State.Missing] then has them.
func (s *State) ListNodeNames() (names []string, readable bool, err error) {
	p := s.parts
	allowed, _, err := p.probe(p.ctx, kindNode)
	if err != nil || !allowed {
		return nil, false, err
	}
	version, _, _ := p.served.serves(kindNode)
	e, err := p.lister.client.endpoint(kindNode, version)
	if err != nil {
		return nil, false, err
	}
	c := p.lister.client
	all, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.config), c.http)
	if err != nil {
		return nil, false, fmt.Errorf("connect to cluster %s: %w", c.host, err)
	}
	for range listAttempts {
		names = nil
		for opts := (metav1.ListOptions{Limit: pageSize}); ; {
			var page *metav1.PartialObjectMetadataList
			if page, err = all.Resource(e.resource).List(p.ctx, opts); err != nil {
				break
			}
			for i := range page.Items {
				names = append(names, page.Items[i].Name)
			}
			if opts.Continue = page.Continue; opts.Continue == "" {
				return names, true, nil
			}
		}
		if !apierrors.IsResourceExpired(err) {
			break
		}
	}
	return nil, false, c.explain(p.ctx, "list nodes of", err)
}
