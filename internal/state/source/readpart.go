package source

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	validation "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
)

// fetch reads a part of a kind into the state. It records errors.
func (p *parts) fetch(k kind, part Part) {
	if p.failed() {
		return
	}
	if err := p.tryFetch(p.ctx, k, part); err != nil {
		p.fail(err)
	}
}

func (p *parts) tryFetch(ctx context.Context, k kind, part Part) error {
	if p.file != nil {
		if err := p.file.fetch(k, part); err != nil {
			return err
		}
		p.markRead(k, part)
		return nil
	}
	version, how, _ := p.served.serves(k)
	if how != served || part == (Part{Kinds: part.Kinds}) || len(validation.IsPathSegmentName(part.Namespace)) > 0 {
		return p.fetchAll(ctx, k)
	}
	e, err := p.lister.client.endpoint(k, version)
	if err != nil {
		return err
	}
	e.namespace = part.Namespace
	listed, err := p.lister.pages(ctx, e, part.listOptions())
	switch {
	case apierrors.IsForbidden(err):
		return p.forbidden(ctx, k, part)
	case apierrors.IsNotFound(err), apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		// The resource is gone, or the server does not support the field selector.
		return p.fetchAll(ctx, k)
	case err != nil:
		return p.lister.client.explain(ctx, "list "+e.resource.GroupResource().String()+" of", err)
	}
	if part.Namespace == "" {
		p.markAsked(k)
	}
	p.lister.state.sweepPart(k, part, listed.keys)
	p.markRead(k, part)
	return nil
}

// listOptions selects the part in a namespace. Only a namespace without selectors is read in
// pages: API servers answer a list without a limit from their index of pods by node, and one
// with a limit from etcd.
func (p Part) listOptions() metav1.ListOptions {
	var selectors []fields.Selector
	if p.Name != "" {
		selectors = append(selectors, fields.OneTermEqualSelector(metav1.ObjectNameField, p.Name))
	}
	if p.Node != "" {
		selectors = append(selectors, fields.OneTermEqualSelector("spec.nodeName", p.Node))
	}
	if len(selectors) == 0 {
		return metav1.ListOptions{Limit: pageSize}
	}
	return metav1.ListOptions{FieldSelector: fields.AndSelectors(selectors...).String()}
}

// fetchAll reads all objects of a kind.
func (p *parts) fetchAll(ctx context.Context, k kind) error {
	if err := p.lister.kind(ctx, p.served, k); err != nil {
		return err
	}
	p.markAsked(k)
	p.markAllRead(k)
	return nil
}

// forbidden is called when the user may not list a part. Like [List], it records that the user
// may not list the kind, unless that is allowed.
func (p *parts) forbidden(ctx context.Context, k kind, part Part) error {
	allowed, _, err := p.probe(ctx, k)
	switch {
	case err != nil:
		return err
	case allowed:
		return p.fetchAll(ctx, k)
	}
	p.markRead(k, part)
	return nil
}

// probe lists one object of a kind, to find out whether the user may list the kind. It records
// kinds that the user may not list as missing, with the reason that [List] gives.
func (p *parts) probe(ctx context.Context, k kind) (allowed, exists bool, err error) {
	e, err := p.lister.endpoint(p.served, k)
	if e == nil {
		return false, false, err
	}
	p.markAsked(k)
	list, err := e.page(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, false, p.lister.notListed(ctx, e, err)
	}
	return true, meta.LenList(list) > 0, nil
}

func (p *parts) markAsked(k kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked |= 1 << k
}

// hasAsked reports whether it is known if the user may list a kind, or a part of it.
func (p *parts) hasAsked(k kind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked&(1<<k) != 0 || len(p.read[k]) > 0
}

// sweepPart removes the objects of a part that were not listed.
func (s *State) sweepPart(k kind, part Part, listed map[objectKey]struct{}) {
	if part.Node != "" && k != kindPod {
		return // the node of other objects is not kept
	}
	for _, key := range s.keys(k) {
		if _, ok := listed[key]; !ok && s.inPart(k, part, key) {
			s.remove(k, key.namespace.Value(), key.name)
		}
	}
}

func (s *State) inPart(k kind, part Part, key objectKey) bool {
	switch {
	case part.Namespace != "" && part.Namespace != key.namespace.Value(), part.Name != "" && part.Name != key.name:
		return false
	case part.Node == "" || k != kindPod:
		return true
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.pods[key].node.Value() == part.Node
}

// Probe asks for one object of each of the kinds of which nothing was read, so that
// [State.Missing] has those that the user may not list. It does nothing if the State is not partial,
// or of a snapshot, which says so.
func (s *State) Probe(kinds Kinds) error {
	if s.parts == nil || s.OfFile() {
		return nil
	}
	for k := range kindCount {
		if kinds&(1<<k) == 0 || s.parts.hasAsked(k) || s.parts.failed() {
			continue
		}
		if _, _, err := s.parts.probe(s.parts.ctx, k); err != nil {
			s.parts.fail(err)
		}
	}
	return s.ReadErr()
}

// hasRBAC reports whether the cluster has roles or bindings, and reads no more than one.
func (p *parts) hasRBAC() bool {
	p.mu.Lock()
	probed, exists := p.rbacProbed, p.rbacExists
	p.rbacProbed = true
	p.mu.Unlock()
	if probed {
		return exists
	}
	for _, k := range []kind{kindClusterRole, kindClusterRoleBinding, kindRole, kindRoleBinding} {
		allowed, exists, err := p.probe(p.ctx, k)
		if err != nil {
			p.fail(err)
			return false
		}
		if allowed {
			p.lister.state.rbacRead(k)
		}
		if exists {
			p.mu.Lock()
			p.rbacExists = true
			p.mu.Unlock()
			return true
		}
		p.markAllRead(k) // there are none, or the user may not list them
	}
	return false
}

// ListNodeNames lists the names of all Node objects of a partial State, in the order of the
// server, and reads only their metadata. Readable is false if the user may not list nodes;
// [State.Missing] then has them.
func (s *State) ListNodeNames() (names []string, readable bool, err error) {
	p := s.parts
	allowed, _, err := p.probe(p.ctx, kindNode)
	if err != nil || !allowed {
		return nil, false, err
	}
	e, err := p.lister.endpoint(p.served, kindNode)
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
